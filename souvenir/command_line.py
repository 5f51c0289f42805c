"""The command line of the service.

    souvenir-server                 serve on HOST:PORT
    souvenir-server check           compare the database with itself, while no service runs on it
    souvenir-server check --repair  also repair what is stored twice, after a backup
    souvenir-server accept-loss     confirm that writes are missing, so that it is no longer reported
    souvenir-server repair-ids      renumber memories whose ids an import moved too far, while no service runs on it
    souvenir-server restore NAME    replace the database with a backup, while no service runs on it
    souvenir-server import-memories FOLDER   import the data folder of a Memories service, while no service runs
    souvenir-server migrate --from PLACE --to PLACE  move a store between a data folder and PostgreSQL, while no service
                                    runs on either; a PLACE is a folder or a URL of postgresql://
    souvenir-server export-archive FILE    write the whole store to a signed file, while no service runs
    souvenir-server import-archive FILE    fill an empty store with such a file
    souvenir-server sync-list       list the backups in the bucket
    souvenir-server sync-download [NAME]  copy a backup from the bucket, by default the newest upload, for `restore`

`python app.py` is the same command.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from souvenir.api.transfer_lines import ReadAs
from souvenir.application import Application
from souvenir.core.errors import SouvenirError, SyncNotConfigured
from souvenir.core.files import PRIVATE_UMASK
from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.types import DEFAULT_NAMESPACE
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model
from souvenir.server.connections import ServerConfig, serve_until_stopped
from souvenir.server.logs import configure_logging
from souvenir.server.middleware import EarlyRefusal
from souvenir.server.request_guards import namespace_name
from souvenir.server.service import Service
from souvenir.store.engines import require_file
from souvenir.store.sqlite.backups import Backups
from souvenir.store.sqlite.losses import MISSING
from souvenir.store.sqlite.repair import rebuild_indexes
from souvenir.store.sqlite.restore import accept_losses, repair_ids, require_store, restore_offline
from souvenir.sync.bucket import Bucket
from souvenir.sync.transfer import BackupTransfer
from souvenir.transfer.folder_import import FolderOrder, import_folder

SAMPLED_SEARCHES = 50
"""Searches that a migration compares by default."""

SWITCH_INTERVAL_S = 0.001
"""The switch interval: a request needs the interpreter several times, and waits this long while others compute."""


def serve(settings: Settings) -> int:
    """Run until a stop signal. The store is opened first, so that a refusal is one sentence and not a stack trace.

    :raises StoreUnusable: If the data folder must not be opened.
    """
    configure_logging(settings.log_level, settings.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    service = Service.open(settings, ReadAs())
    app = Application(settings, lambda: service)
    shed = EarlyRefusal(app.routes, service)
    # What there is now stays until the end. A full collection would visit all of it, and stop every thread for 0.1 s.
    gc.freeze()
    serve_until_stopped(ServerConfig(app, settings, shed=shed, on_stop=service.stop_admitting))
    return 0


def check(settings: Settings, *, repairs: bool) -> int:
    """Print every inconsistency that the engine finds, after repairing what can be repaired if that is asked for."""
    if repairs:
        require_file(settings, "A repair")
    if settings.database_url is None:
        require_store(settings)
    if repairs:
        for done in rebuild_indexes(settings):
            _say(done)
    engine = MemoryEngine.open(settings, chosen_model(settings)[0])
    try:
        engine.warm_up()
        problems = engine.check()
        if repairs and not all(MISSING in problem for problem in problems):
            for done in engine.repair():
                _say(done)
            problems = engine.check()
    finally:
        engine.close()
    for problem in problems:
        _say(problem)
    if not problems:
        _say(f"{settings.database_place} is sound")
        return 0
    if all(MISSING in problem for problem in problems):
        following = "the commands to choose from are named above"
    elif repairs:
        following = (
            "these have no second copy: go back to a backup with `python app.py restore NAME`, delete these rows over "
            "the API, or keep changed ones as they are with `python app.py accept-loss`"
        )
    elif settings.database_url is None:
        following = "run `python app.py check --repair`"
    else:
        following = "restore the database from a backup, or delete these rows over the API"
    _say(f"{len(problems)} problems in {settings.database_place}; {following}")
    return 1


def accept_loss(settings: Settings) -> int:
    """Print the losses that were reported until now, and report them no longer."""
    require_file(settings, "The acceptance of a loss")
    accepted = accept_losses(settings)
    for message in accepted:
        _say(message)
    _say(f"{len(accepted)} losses accepted" if accepted else f"No loss is known of {settings.database_path}")
    return 0


def repair(settings: Settings) -> int:
    """Repair the ids of memories, and print the old and the new id of each memory that was renumbered."""
    require_file(settings, "A repair of ids")
    done = repair_ids(settings)
    if done.backup is None:
        _say(f"The ids in {settings.database_path} need no repair")
        return 0
    for old, new in done.new_of_old.items():
        _say(f"{old} -> {new}")
    _say(f"{len(done.new_of_old)} memories in {settings.database_path} were renumbered; the backup is {done.backup}")
    return 0


def restore(settings: Settings, name: str) -> int:
    """Replace the database with a backup, and print the location of the replaced files."""
    require_file(settings, "A restore by the service")
    done = restore_offline(settings, name)
    _say(f"Restored {name} to {settings.database_path}")
    for path in done.kept:
        _say(f"The replaced file is kept as {path}")
    if not done.keys_carried_over:
        _say("The keys are those of the backup, since the current ones could not be read: repeat later revocations")
        _say("Data erased after the newest backup may be back for the same reason: erase it again")
    return 0


def import_memories(settings: Settings, order: FolderOrder) -> int:
    """Import the data of a service of the Memories family, and print the report."""
    embedder, spec = chosen_model(settings)
    with closing(embedder):
        embedder.load()
        import_folder(settings, embedder, order, ReadAs(), model_spec=to_json(spec.to_json()), say=_say)
    return 0


def migrate(settings: Settings, source: str, target: str, searches: int) -> int:
    """Move a store, and print what was copied and compared."""
    # Its libraries would slow every start.
    from souvenir.transfer.migration import Migration, migrate_store

    migrate_store(settings, Migration(source, target, searches), _say)
    return 0


def export_store(settings: Settings, path: Path) -> int:
    """Write the archive of the store, and print what it holds and the key that signed it."""
    from souvenir.transfer.archive import export_archive

    export_archive(settings, path, _say)
    return 0


def import_store(settings: Settings, path: Path, public_key: str | None, *, unsigned: bool) -> int:
    """Fill an empty store with an archive, and print what was copied and compared."""
    from souvenir.transfer.archive import import_archive

    import_archive(settings, path, _say, public_key=public_key, unsigned=unsigned)
    return 0


def sync_list(settings: Settings) -> int:
    """Print the backups in the bucket, the newest upload first."""
    for backup in _bucket(settings).backups():
        encrypted = ", encrypted" if backup.encrypted else ""
        _say(f"{backup.name}  {backup.uploaded_at:%Y-%m-%d %H:%M:%S} UTC, {backup.stored_bytes} bytes{encrypted}")
    return 0


def sync_download(settings: Settings, name: str | None, *, allow_unencrypted: bool) -> int:
    """Copy a backup from the bucket to the backups in DATA_DIR, also on a machine that has no database yet."""
    configure_logging(settings.log_level, settings.log_format)
    backups = Backups(settings.backup_dir, keep=settings.max_backups)
    transfer = BackupTransfer(settings, _bucket(settings), backups)
    received = transfer.download(transfer.resolve(name), allow_unencrypted=allow_unencrypted)
    _say(f"{received.backup.name} is in {settings.backup_dir}; run `python app.py restore {received.backup.name}`")
    return 0


def _bucket(settings: Settings) -> Bucket:
    """:raises SyncNotConfigured: If there is none."""
    if settings.sync_bucket is None:
        raise SyncNotConfigured
    return Bucket(settings)


_COMMANDS: Mapping[str, Callable[[Settings, argparse.Namespace], int]] = MappingProxyType(
    {
        "check": lambda settings, given: check(settings, repairs=given.repair),
        "accept-loss": lambda settings, _: accept_loss(settings),
        "repair-ids": lambda settings, _: repair(settings),
        "restore": lambda settings, given: restore(settings, given.name),
        "import-memories": lambda settings, given: import_memories(
            settings, FolderOrder(given.path, given.namespace, given.embed, given.dry_run, back_up=not given.no_backup)
        ),
        "migrate": lambda settings, given: migrate(settings, given.source, given.target, given.searches),
        "export-archive": lambda settings, given: export_store(settings, given.path),
        "import-archive": lambda settings, given: import_store(
            settings, given.path, given.public_key, unsigned=given.unsigned
        ),
        "sync-list": lambda settings, _: sync_list(settings),
        "sync-download": lambda settings, given: sync_download(
            settings, given.name, allow_unencrypted=given.allow_unencrypted
        ),
    }
)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    os.umask(PRIVATE_UMASK)
    try:
        settings = Settings()
        command = _COMMANDS.get(given.command)
        return serve(settings) if command is None else command(settings, given)
    except ValidationError as error:
        for field in error.errors(include_input=False, include_url=False):
            name = "_".join(map(str, field["loc"])).upper()
            _complain(f"The setting{f' {name}' if name else 's'} cannot be used: {field['msg']}")
        return 2
    except SouvenirError as error:
        _complain(error.message)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="souvenir-server", description="Souvenir, a memory service for agents.")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("serve", help="answer requests on HOST:PORT (the default)")
    checking = commands.add_parser("check", help="compare the database with itself, while no service runs on it")
    checking.add_argument("--repair", action="store_true", help="repair what is stored twice, after a backup")
    commands.add_parser("accept-loss", help="confirm that writes are missing, while no service runs")
    commands.add_parser("repair-ids", help="renumber memories whose ids an import moved too far, while no service runs")
    commands.add_parser("restore", help="go back to a backup, while no service runs").add_argument("name")
    importing = commands.add_parser(
        "import-memories", help="import the data folder of a Memories service, while no service runs"
    )
    importing.add_argument("path", type=Path, help="the folder with metadata.json, or a SQLite or Qdrant file of it")
    importing.add_argument("--namespace", type=namespace_name, default=DEFAULT_NAMESPACE, help="where they are stored")
    importing.add_argument("--embed", action="store_true", help="embed all texts again, whatever vectors there are")
    importing.add_argument("--dry-run", action="store_true", help="store nothing, and say what would be done")
    importing.add_argument("--no-backup", action="store_true", help="make no backup first")
    moving = commands.add_parser(
        "migrate", help="move a store between a data folder and PostgreSQL, while no service runs on either"
    )
    moving.add_argument("--from", dest="source", required=True, metavar="PLACE", help="a folder or postgresql://...")
    moving.add_argument("--to", dest="target", required=True, metavar="PLACE", help="an empty one of the other kind")
    moving.add_argument(
        "--searches", type=int, default=SAMPLED_SEARCHES, help="searches to compare; default %(default)s"
    )
    exporting = commands.add_parser("export-archive", help="write the whole store to a signed file; no service may run")
    exporting.add_argument("path", type=Path, help="a new file; its signature is written to FILE.sig")
    filling = commands.add_parser("import-archive", help="fill an empty store with a file of export-archive")
    filling.add_argument("path", type=Path)
    filling.add_argument("--public-key", help="the key that must have signed it, as export-archive prints it")
    filling.add_argument("--unsigned", action="store_true", help="accept a file without a signature")
    commands.add_parser("sync-list", help="list the backups in the bucket")
    downloading = commands.add_parser("sync-download", help="copy a backup from the bucket, by default the newest")
    downloading.add_argument("name", nargs="?")
    downloading.add_argument(
        "--allow-unencrypted",
        action="store_true",
        help="accept one that is not encrypted although SYNC_PASSPHRASE is set",
    )
    return parser


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _complain(line: str) -> None:
    sys.stderr.write(line + "\n")
