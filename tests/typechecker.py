"""What checks annotations in test runs: beartype, with an int where a float is asked for allowed, as PEP 484 has it."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
