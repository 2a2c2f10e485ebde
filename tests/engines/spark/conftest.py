"""The brokers of the tests of sources, which streaming jobs read from too."""

from tests.sources.conftest import kafka, kafka_jars, mosquitto, mosquitto_program

__all__ = ["kafka", "kafka_jars", "mosquitto", "mosquitto_program"]
