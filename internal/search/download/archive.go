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
	// tarBlock is the block size of a tar in bytes, tarEnd the size of its end marker.
	tarBlock = 512
	tarEnd   = 2 * tarBlock
)

// archive writes a tar of files, compressed with gzip. A tar has the size of a file before its content, so each file is first
// written to disk. It is compressed only once: the concatenation of gzip members decompresses to the concatenation of their
// contents (RFC 1952, section 2.2).
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

// spool writes a file to disk.
func (s *Service) spool(ctx context.Context, j *job) (*spooled, error) {
	const doing = "writing a file of an archive to disk"
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

// fill writes the file.
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

// writeGzip writes a part of an archive as a gzip member.
func writeGzip(w io.Writer, part []byte) error {
	z := gzip.NewWriter(w)
	if _, err := z.Write(part); err != nil {
		return err
	}
	return z.Close()
}

// contextReader fails when its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	r   io.Reader
}

// Read reads until the context ends.
func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, clientGone(err)
	}
	return r.r.Read(b)
}

// countingWriter counts the bytes written.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write writes to the underlying writer.
func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// limitedWriter fails after a number of bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
	name string
}

// Write writes to the underlying writer.
func (b *limitedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &core.Error{
			Code: core.CodeTooLarge, Message: fmt.Sprintf("the file %q is too large for an archive", shown(b.name)),
			Hint: "download this file separately",
		}
	}
	n, err := b.w.Write(p)
	if err != nil {
		err = core.WrapError(core.CodeUnavailable, "writing a file of an archive to disk", err)
	}
	return n, err
}

// maxEntryName is the maximum length of a file name in an archive, in bytes.
const maxEntryName = 200

// entryName returns the unique name of a file in an archive, without folders.
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
