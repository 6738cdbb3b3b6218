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

// types are the content types of the assets. Those of package mime depend on the machine.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files that pages load. Their URLs have the version in the path, so that relative imports of scripts
// use the same version.
type assets struct {
	files   map[string]asset
	version string // of all of them together
}

// An asset is a file and its hash.
type asset struct {
	body []byte
	hash string
}

func loadAssets() assets {
	a, all := assets{files: map[string]asset{}}, sha256.New()
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
		all.Write(sum[:])
		a.files[path.Base(file)] = asset{body: body, hash: hex.EncodeToString(sum[:8])}
	}
	a.version = hex.EncodeToString(all.Sum(nil)[:8])
	return a
}

// address returns the URL of the file.
func (a assets) address(name string) string { return "/ui/assets/" + a.version + "/" + name }

// asset sends a file. Browsers may cache it forever only if the URL has the version of this replica: during a rolling
// upgrade, a replica of another version may have sent the page.
func (u *ui) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	a, ok := u.assets.files[name]
	if !ok {
		u.notFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", types[path.Ext(name)])
	head.Set("ETag", `"`+a.hash+`"`)
	head.Set("Cache-Control", "no-cache")
	if r.PathValue("version") == u.assets.version {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}
