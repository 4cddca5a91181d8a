-- So many more writes of limits, each with a number. Whoever writes one does so alone until COMMIT. Answers with the last.
update limit_revision set revision = revision + :count::int returning revision
