"""What our engine is measured against."""
