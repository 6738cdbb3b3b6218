package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// types are the content types of the assets. They do not depend on the machine's
// own tables, as those of package mime do.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// An asset is a file that pages load. Its hash is in the address by which they do.
type asset struct {
	body []byte
	hash string
}

func loadAssets() map[string]asset {
	assets := map[string]asset{}
	files, err := fs.Glob(assetFiles, "assets/*")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		body, err := assetFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		assets[path.Base(file)] = asset{body: body, hash: hex.EncodeToString(sum[:8])}
	}
	return assets
}

// asset sends a file. A browser may keep it for ever only if the address names
// the very hash that this replica has: while an upgrade rolls, another may have
// written the page.
func (u *ui) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	a, ok := u.assets[name]
	if !ok {
		u.notFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", types[path.Ext(name)])
	head.Set("ETag", `"`+a.hash+`"`)
	head.Set("Cache-Control", "no-cache")
	if r.FormValue("v") == a.hash {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}
