"""`souvenir serve`: runs the service, a separate program with its own environment.

The client never imports the service. The process is replaced, so signals and the exit status are those of the service.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import click

from souvenir_client.cli.failures import Unusable
from souvenir_client.cli.options import global_options
from souvenir_client.saved import expanded, saved

HOME_VARIABLE, HOME_SAVED = "SOUVENIR_HOME", "souvenir_home"


@click.command()
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help=f"Folder of the service. Default: {HOME_VARIABLE}, then the saved one, then the current folder or a parent.",
)
def serve(home: Path | None) -> None:
    """Run the service in the foreground until a signal stops it.

    It reads its settings from the environment and from .env in its folder, which also holds its data unless DATA_DIR is
    set. With --json it logs one JSON object a line.
    """
    folder = service_folder(home)
    command = command_in(folder)
    if global_options().as_json:
        os.environ["LOG_FORMAT"] = "json"
    _become(folder, command)


def service_folder(home: Path | None) -> Path:
    """Return the folder of the service.

    :raises Unusable: If there is none.
    """
    named = named_folder(home)
    if named is not None:
        if not _holds_service(named):
            raise Unusable(f"{named} is not the folder of the service: it has no app.py and no folder souvenir.")
        return named.absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if _holds_service(folder):
            return folder
    raise Unusable(
        f"The folder of the service was not found: set --home or {HOME_VARIABLE}, or run `docker compose up` in the "
        "folder."
    )


def named_folder(home: Path | None) -> Path | None:
    """Return the folder in the option, the environment or the saved file.

    :raises Unusable: If that file cannot be read.
    """
    try:
        said = home or os.environ.get(HOME_VARIABLE) or saved(HOME_SAVED)
    except ValueError as error:
        raise Unusable(f"{error}.") from error
    return expanded(said) if said else None


def command_in(folder: Path) -> list[str]:
    """The command that runs the service there.

    :raises Unusable: If neither its environment nor uv is installed.
    """
    python = folder / ".venv" / "bin" / "python"
    if python.exists():
        return [str(python), "app.py"]
    if uv := shutil.which("uv"):
        return [uv, "run", "app.py"]
    raise Unusable(
        f"{folder} has no .venv and uv is not installed: run `make run` there once, which creates .venv, or "
        "`docker compose up`."
    )


def _holds_service(folder: Path) -> bool:
    return (folder / "app.py").is_file() and (folder / "souvenir").is_dir()


def _become(folder: Path, command: list[str]) -> NoReturn:
    os.chdir(folder)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - a program of the folder that the caller named
