select version from paddock.schema_migrations
