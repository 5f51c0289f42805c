"""The routes of Locrit."""
