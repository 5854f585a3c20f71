import urllib.error
import urllib.request

import pytest


def test_it_serves(pod):
    with urllib.request.urlopen(f"{pod['base_url']}/hello.txt", timeout=10) as answer:
        assert answer.read() == b"hello from the pod\n"


def test_what_is_not_there_is_not_found(pod):
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"{pod['base_url']}/no-such-file", timeout=10)
    assert error.value.code == 404
