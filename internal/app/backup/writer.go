package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tutti/internal/core"
)

// pieceBytes is the size of the files that Stream writes.
const pieceBytes = 4 << 20

// fileMode grants access to the owner only: a backup contains hashes of API keys.
const fileMode = 0o600

// Writer writes a backup as a tar archive. It is not safe for concurrent use.
type Writer struct {
	tar      *tar.Writer
	manifest Manifest
}

// NewWriter returns a Writer of a backup that starts now.
func NewWriter(w io.Writer, version string) *Writer {
	return &Writer{tar: tar.NewWriter(w), manifest: Manifest{
		Format: Format, Version: version, StartedAt: time.Now().UTC(), Parts: []string{}, NotIncluded: []string{}, Files: []File{},
	}}
}

// Part records that the backup contains a part.
func (w *Writer) Part(name string) { w.manifest.Parts = append(w.manifest.Parts, name) }

// NotIncluded records that another server holds a part.
func (w *Writer) NotIncluded(name string) {
	w.manifest.NotIncluded = append(w.manifest.NotIncluded, name)
}

// File adds a file of size bytes, all of which write must write.
func (w *Writer) File(name string, size int64, write func(io.Writer) error) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: fileMode, ModTime: time.Now(), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	sum := sha256.New()
	count := &counter{w: io.MultiWriter(w.tar, sum)}
	if err := write(count); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if count.n != size {
		return core.NewError(core.CodeInternal, fmt.Sprintf("writing %s: %d bytes instead of %d", name, count.n, size))
	}
	w.manifest.Files = append(w.manifest.Files, File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Stream adds a file of unknown size, as files of at most 4 MiB that Folder.Stream reads as one.
func (w *Writer) Stream(name string, write func(io.Writer) error) error {
	p := &pieces{writer: w, name: name}
	if err := write(p); err != nil {
		return err
	}
	return p.flush()
}

// pieceName returns the name of one of the files of a stream, which are numbered from 0.
func pieceName(stream string, number int) string { return fmt.Sprintf("%s.%06d", stream, number) }

// pieces writes the files of one stream.
type pieces struct {
	writer *Writer
	name   string
	number int
	buf    bytes.Buffer
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	written := len(b)
	for p.buf.Len()+len(b) > pieceBytes {
		n := pieceBytes - p.buf.Len()
		p.buf.Write(b[:n])
		b = b[n:]
		if err := p.flush(); err != nil {
			return 0, err
		}
	}
	p.buf.Write(b)
	return written, nil
}

func (p *pieces) flush() error {
	err := p.writer.File(pieceName(p.name, p.number), int64(p.buf.Len()), func(w io.Writer) error {
		_, err := w.Write(p.buf.Bytes())
		return err
	})
	p.number++
	p.buf.Reset()
	return err
}

// Close writes the manifest, which completes the backup.
func (w *Writer) Close() error {
	w.manifest.EndedAt = time.Now().UTC()
	raw, err := json.MarshalIndent(w.manifest, "", "  ")
	if err != nil {
		return core.WrapError(core.CodeInternal, "encoding the manifest", err)
	}
	if err := w.File(ManifestName, int64(len(raw)), func(to io.Writer) error {
		_, err := to.Write(raw)
		return err
	}); err != nil {
		return err
	}
	if err := w.tar.Close(); err != nil {
		return fmt.Errorf("ending the backup: %w", err)
	}
	return nil
}
