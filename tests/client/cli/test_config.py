"""config shows and changes the saved file; a secret is shown only when requested by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.client.cli.conftest import Run
from tests.client.running import free_port


@pytest.fixture
def config(run: Run, tmp_path: Path) -> Run:
    """`souvenir config` with a file of its own."""
    return lambda *arguments, **more: run("config", *arguments, CONFIG_FILE=str(tmp_path / "config.json"), **more)


def out(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_saved_value_can_be_read_listed_and_removed(config, tmp_path):
    assert str(tmp_path / "config.json") in out(config("set", "souvenir_url", "http://a:1"))
    assert out(config("get", "SOUVENIR_URL")) == "http://a:1\n"
    assert out(config("list")).split() == ["NAME", "VALUE", "souvenir_url", "http://a:1"]
    assert "nothing to change" in out(config("set", "souvenir_url", "http://a:1"))
    out(config("unset", "souvenir_url"))
    assert config("unset", "souvenir_url").exit_code == 1
    missing = config("get", "souvenir_url")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "Nothing is saved" in config("list").stderr


def test_secrets_are_masked_in_the_list(config):
    for name in ("souvenir_api_key", "OPENAI_API_KEY", "proxy_password"):
        out(config("set", name, "s3cret"))
    for form in ([], ["--json"]):
        assert "s3cret" not in config("list", *form).output
        assert config("list", *form).stdout.count("****") == 3
    assert out(config("get", "openai_api_key")) == "s3cret\n"


def test_values_that_are_not_strings_are_shown_as_json(config, tmp_path):
    (tmp_path / "config.json").write_text('{"cors_origins": ["a"], "api_key": ""}', encoding="utf-8")
    assert json.loads(out(config("get", "cors_origins"))) == ["a"]
    assert json.loads(out(config("list", "--json")))["saved"] == {"api_key": "", "cors_origins": ["a"]}


@pytest.mark.parametrize("name", ["", "a b", "1a", "a-b", "ä"])
def test_an_invalid_name_is_wrong_usage(config, name):
    assert config("set", name, "x").exit_code == 2


def test_an_unreadable_file_is_reported(config, run, tmp_path):
    (tmp_path / "config.json").write_text("port: 1", encoding="utf-8")
    for arguments in (["list"], ["get", "port"], ["set", "port", "1"], ["unset", "port"]):
        done = config(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is not JSON" in done.stderr
    assert run("list", CONFIG_FILE=str(tmp_path / "config.json"), SOUVENIR_API_KEY="").exit_code == 2


def test_commands_use_the_saved_address_and_key(config, run, service):
    out(config("set", "souvenir_url", f"http://127.0.0.1:{free_port()}"))
    at = json.loads(out(config("list", "--json")))["path"]
    assert run("list", SOUVENIR_URL="", CONFIG_FILE=at).exit_code == 3
    out(config("set", "souvenir_url", service.url))
    assert run("list", SOUVENIR_URL="", CONFIG_FILE=at).exit_code == 0
