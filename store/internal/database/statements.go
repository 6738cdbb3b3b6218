package database

import (
	"embed"
	"fmt"
)

//go:embed sql/*.sql
var files embed.FS

// Statement returns the text of the file sql/NAME.sql. It panics if there is none: the files are part of the binary.
func Statement(files embed.FS, name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("database: %v", err))
	}
	return string(text)
}

var (
	sqlSettings      = Statement(files, "settings")
	sqlRelax         = Statement(files, "relax")
	sqlSchemaVersion = Statement(files, "schema_version")
)
