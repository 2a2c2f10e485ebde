"""Systems under test by how they are reached, a file each: ``pipe`` (a program), ``engine`` (in this process)."""
