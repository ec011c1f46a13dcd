from pellucid.bench.bandwidth import read_bytes_per_second


def test_it_is_a_rate_that_memory_has():
    assert 1e8 < read_bytes_per_second(8 << 20) < 1e13
