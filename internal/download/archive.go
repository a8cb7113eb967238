package download

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"tutti/internal/core"
)

const (
	// tarBlock is what the sizes in a tar are multiples of, tarEnd how many bytes end it.
	tarBlock = 512
	tarEnd   = 2 * tarBlock
)

// archive makes a tar of files, compressed by gzip. A tar says the size of a file before it, so each is kept on disk until it is
// made; it is compressed once: what gzip made of two parts, one behind the other, is what it makes of the whole (RFC 1952,
// section 2.2).
func (s *Service) archive(ctx context.Context, jobs []*job, head core.DownloadHead, begin core.BeginDownload) error {
	var w io.Writer
	used := map[string]bool{}
	for i, j := range jobs {
		kept, err := s.spool(ctx, j)
		if err != nil {
			return err
		}
		if w == nil {
			w, err = begin(head)
		}
		if err == nil {
			err = kept.copy(ctx, w, entryName(j, i, used), s.cfg.Now())
		}
		if err = errors.Join(err, kept.remove()); err != nil {
			return err
		}
	}
	return writeGzip(w, make([]byte, tarEnd))
}

// spooled is a file of an archive on disk.
type spooled struct {
	file *os.File
	size int64
}

// spool makes a file on disk.
func (s *Service) spool(ctx context.Context, j *job) (*spooled, error) {
	const doing = "keeping a file of an archive on disk"
	f, err := os.CreateTemp(s.cfg.SpoolDir, "tutti-download-*.gz")
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, doing, err)
	}
	kept := &spooled{file: f}
	if err := s.fill(ctx, j, kept); err != nil {
		_ = kept.remove() // the first error says more
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = kept.remove()
		return nil, core.WrapError(core.CodeUnavailable, doing, err)
	}
	return kept, nil
}

// fill makes the file.
func (s *Service) fill(ctx context.Context, j *job, kept *spooled) error {
	z, err := gzip.NewWriterLevel(&limitedWriter{w: kept.file, left: s.cfg.MaxSpoolBytes, name: j.name}, gzip.BestSpeed)
	if err != nil {
		return core.WrapError(core.CodeInternal, "compressing a file of an archive", err)
	}
	count := &countingWriter{w: z}
	rows, err := j.run(ctx, count)
	s.cfg.Metrics.wrote(j.format, rows)
	if err != nil {
		return err
	}
	kept.size = count.n
	return z.Close()
}

// copy writes the file into an archive.
func (k *spooled) copy(ctx context.Context, w io.Writer, name string, at time.Time) error {
	var head bytes.Buffer
	err := tar.NewWriter(&head).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: k.size, Mode: 0o644, ModTime: at.UTC().Truncate(time.Second),
	})
	if err != nil {
		return core.WrapError(core.CodeInternal, "writing the head of a file in an archive", err)
	}
	if err := writeGzip(w, head.Bytes()); err != nil {
		return err
	}
	if _, err := io.Copy(w, contextReader{ctx: ctx, r: k.file}); err != nil {
		return err
	}
	if rest := k.size % tarBlock; rest > 0 {
		return writeGzip(w, make([]byte, tarBlock-rest))
	}
	return nil
}

func (k *spooled) remove() error {
	if err := errors.Join(k.file.Close(), os.Remove(k.file.Name())); err != nil {
		return core.WrapError(core.CodeInternal, "removing a file of an archive from disk", err)
	}
	return nil
}

// writeGzip writes a part of an archive.
func writeGzip(w io.Writer, part []byte) error {
	z := gzip.NewWriter(w)
	if _, err := z.Write(part); err != nil {
		return err
	}
	return z.Close()
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	r   io.Reader
}

// Read reads on until the context has ended.
func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, clientGone(err)
	}
	return r.r.Read(b)
}

// countingWriter counts what is written.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write passes bytes on.
func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// limitedWriter takes so many bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
	name string
}

// Write passes bytes on.
func (b *limitedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &core.Error{
			Code: core.CodeTooLarge, Message: fmt.Sprintf("the file %q is too large for an archive", shown(b.name)),
			Hint: "download it by itself",
		}
	}
	n, err := b.w.Write(p)
	if err != nil {
		err = core.WrapError(core.CodeUnavailable, "keeping a file of an archive on disk", err)
	}
	return n, err
}

// maxEntryName is how long the name of a file in an archive may be, in bytes.
const maxEntryName = 200

// entryName returns the name of the file at a place in an archive: no other's, and none that leads to a folder.
func entryName(j *job, place int, used map[string]bool) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case c < ' ' || c == 0x7F:
			return -1
		case strings.ContainsRune(`/\:*?"<>|`, c):
			return '_'
		default:
			return c
		}
	}, strings.ToValidUTF8(j.name, ""))
	name = strings.Trim(name, ". ")
	if len(name) > maxEntryName {
		name = strings.ToValidUTF8(name[len(name)-maxEntryName:], "") // the end has the extension
	}
	if name == "" {
		name = "file-" + strconv.Itoa(place+1)
	}
	name = withExtension(name, j.format)
	dot := strings.LastIndexByte(name, '.')
	for stem, ext, n := name[:dot], name[dot:], 2; used[strings.ToLower(name)]; n++ {
		name = stem + "-" + strconv.Itoa(n) + ext
	}
	used[strings.ToLower(name)] = true
	return name
}
