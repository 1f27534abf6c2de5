"""Replaced by the front door."""
