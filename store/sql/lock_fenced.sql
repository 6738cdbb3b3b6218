select key, lock, token, version, value, written_at from paddock.fenced where key = $1 for update
