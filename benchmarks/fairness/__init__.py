"""Measures what a key gets from the service while another key asks for all of it."""
