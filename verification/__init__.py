"""Long proofs, too long for the tests: every case there is, against independent programs."""
