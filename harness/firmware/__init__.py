"""The firmware: render, compile, inspect, before anything is flashed."""
