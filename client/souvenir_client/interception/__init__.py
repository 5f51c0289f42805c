"""What stands between a vendor's SDK and the vendor: reads conversations as they pass, and adds what is remembered."""
