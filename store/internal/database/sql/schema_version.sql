select version, dirty from paddock.schema_migrations
