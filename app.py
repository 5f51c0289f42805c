"""The front door of the HTTP service: `python app.py [check | repair-ids | restore NAME]`, or `uvicorn app:app`."""

from souvenir.application import __getattr__, create_app
from souvenir.command_line import main

__all__ = ["__getattr__", "create_app", "main"]

if __name__ == "__main__":
    raise SystemExit(main())
