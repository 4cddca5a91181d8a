-- One more write of limits. Whoever writes one does so alone until COMMIT.
update limit_revision set revision = revision + 1 returning revision
