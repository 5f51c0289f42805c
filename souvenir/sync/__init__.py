"""Cloud sync: copies of backups in an S3-compatible bucket."""
