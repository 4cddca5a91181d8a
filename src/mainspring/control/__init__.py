"""What people and programs may ask for: submit, find, cancel, change, wait for results."""
