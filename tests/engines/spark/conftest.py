"""The brokers of the tests of sources, which streaming jobs read from too."""

from tests.sources.conftest import mosquitto, mosquitto_program

__all__ = ["mosquitto", "mosquitto_program"]
