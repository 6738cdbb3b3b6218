//go:build unix

package fetch

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ulikunitz/xz"
)

// mavenCentral is where the archives are published: jar files that contain one tar archive, compressed with xz.
const mavenCentral = "https://repo1.maven.org/maven2"

// downloadTime bounds a download, for connections that stall.
const downloadTime = 10 * time.Minute

// fromMaven fetches the archive of b from Maven Central or a mirror of it.
func (s Source) fromMaven(ctx context.Context, b build, dir string) error {
	name := "embedded-postgres-binaries-" + mavenName()
	version := b.version + ".0"
	address, err := url.JoinPath(cmp.Or(s.Mirror, mavenCentral), "io/zonky/test/postgres", name, version,
		name+"-"+version+".jar")
	if err != nil {
		return fmt.Errorf("the mirror: %w", err)
	}
	jar := filepath.Join(dir, "archive.jar")
	if err := download(ctx, address, jar); err != nil {
		return err
	}
	err = unpackJar(ctx, jar, dir)
	if err == nil {
		err = os.Remove(jar)
	}
	if err == nil {
		err = b.verify(dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// download writes what is at the address to a new file.
func download(ctx context.Context, address, file string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = 30 * time.Second
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err := io.Copy(to, io.LimitReader(response.Body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = fmt.Errorf("there are more than %d bytes", maxDownload)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// unpackJar unpacks the tar archive in the jar into dir.
func unpackJar(ctx context.Context, jar, dir string) (err error) {
	files, err := zip.OpenReader(jar)
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	for _, file := range files.File {
		if path.Dir(file.Name) == "." && strings.HasSuffix(file.Name, ".txz") {
			return unpackTxz(ctx, file, dir)
		}
	}
	return errors.New("the archive contains no programs")
}

// unpackTxz unpacks a compressed tar archive. Its header may reserve up to 4 GiB for the dictionary; no more of that
// is touched than is unpacked, which has a bound.
func unpackTxz(ctx context.Context, file *zip.File, dir string) (err error) {
	packed, err := file.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	archive, err := xz.NewReader(packed)
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	return unpack(ctx, archive, "", dir)
}
