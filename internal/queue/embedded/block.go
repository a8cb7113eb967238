package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"os"

	"github.com/minio/highwayhash"
)

// The format of a record in a file of messages of nats-server (filestore.go): length, sequence, time, length of the subject, subject,
// with headers their length and they, message, checksum.
const (
	recordHeader   = 22
	recordChecksum = 8
	recordMin      = recordHeader + recordChecksum
	// headersBit is set in the length of a record with headers, erasedBit and tombstoneBit in the sequence of an erased message and
	// of a record that says which message was deleted.
	headersBit   = 1 << 31
	erasedBit    = 1 << 63
	tombstoneBit = 1 << 62
	recordMax    = 32 << 20
	// sequencesAhead bounds the sequence of a damaged record after which no other one is.
	sequencesAhead = 1 << 20
)

// block is a file of messages.
type block struct {
	path, stream string
	number       uint64
	err          error
	// first and last are the sequences of its first and last readable message, 0 for none. after is the last one of earlier blocks,
	// before the first one of later blocks, 0 for none.
	first, last, after, before uint64
	// gaps are the parts that are no readable records. tombstones are the sequences of deleted messages, of a block of a stream with
	// gaps.
	gaps       []gap
	tombstones []uint64
}

// gap is a part of a block that is no readable record.
type gap struct {
	start, end int
	// after and before are the sequences of the readable messages around it in its block, 0 for none.
	after, before uint64
	// sequence is what stands where a record has its sequence, 0 if the gap is too short. whole is set if the gap is as long as a
	// record that begins there.
	sequence uint64
	whole    bool
}

// record is a readable record.
type record struct {
	length   int
	sequence uint64
}

// scan reads the block.
func (b *block) scan() error {
	data, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(data, []byte("cmp")) { // compressed, which tutti does not configure
		return nil
	}
	r, err := newRecordReader(b.stream, b.number, data)
	if err != nil {
		return err
	}
	for at := 0; at < len(data); {
		rec, ok := r.read(at)
		if !ok {
			g := r.gap(at)
			g.after = b.last
			b.gaps = append(b.gaps, g)
			at = g.end
			continue
		}
		at += rec.length
		if rec.sequence&tombstoneBit != 0 {
			b.tombstones = append(b.tombstones, rec.sequence&^tombstoneBit)
			continue
		}
		sequence := rec.sequence &^ erasedBit
		if sequence <= b.last {
			continue
		}
		if b.last = sequence; b.first == 0 {
			b.first = sequence
		}
		for i := len(b.gaps) - 1; i >= 0 && b.gaps[i].before == 0; i-- {
			b.gaps[i].before = sequence
		}
	}
	return nil
}

// recordReader reads the records of a block.
type recordReader struct {
	data []byte
	hash hash.Hash
}

func newRecordReader(stream string, number uint64, data []byte) (*recordReader, error) {
	h, err := recordHash(stream, number)
	return &recordReader{data, h}, err
}

// recordHash returns the hash of a block's checksums.
func recordHash(stream string, number uint64) (hash.Hash, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))
	return highwayhash.NewDigest64(key[:])
}

// length returns the length of a record that begins at a position, by its header, false if none can begin there.
func (r *recordReader) length(at int) (length, subject int, headers, ok bool) {
	if at+recordMin > len(r.data) {
		return 0, 0, false, false
	}
	raw := binary.LittleEndian.Uint32(r.data[at:])
	headers = raw&headersBit != 0
	length, subject = int(raw&^headersBit), int(binary.LittleEndian.Uint16(r.data[at+20:]))
	least := recordMin + subject
	if headers {
		least += 4
	}
	return length, subject, headers, length >= least && length <= recordMax && length <= len(r.data)-at
}

// read returns the record at a position, false if it is not readable.
func (r *recordReader) read(at int) (record, bool) {
	length, subject, headers, ok := r.length(at)
	if !ok {
		return record{}, false
	}
	header, body := r.data[at:at+recordHeader], r.data[at+recordHeader:at+length-recordChecksum]
	rest := body[subject:]
	if headers { // their length is not in the checksum
		length := int(binary.LittleEndian.Uint32(rest))
		if rest = rest[4:]; length > len(rest) || !bytes.HasPrefix(rest, []byte("NATS/1.0")) || !bytes.HasSuffix(rest[:length], []byte("\r\n\r\n")) {
			return record{}, false
		}
	}
	if bytes.ContainsFunc(body[:subject], func(c rune) bool { return c <= ' ' || c == '"' || c == '{' || c > '~' }) {
		return record{}, false // nor is the end of the subject
	}
	var sum [recordChecksum]byte
	if !bytes.Equal(checksum(r.hash, header, body[:subject], rest, sum[:0]), r.data[at+length-recordChecksum:at+length]) {
		return record{}, false
	}
	return record{length, binary.LittleEndian.Uint64(header[4:])}, true
}

// checksum appends the checksum of a record.
func checksum(h hash.Hash, header, subject, rest, to []byte) []byte {
	h.Reset()
	for _, part := range [][]byte{header[4:20], subject, rest} {
		_, _ = h.Write(part)
	}
	return h.Sum(to)
}

// gap returns the gap that begins at a position where no record is readable. It ends where the record does by its length, if another one
// is there or the block ends, else where the next readable one begins.
func (r *recordReader) gap(at int) gap {
	g := gap{start: at, end: len(r.data)}
	if at+12 <= len(r.data) {
		g.sequence = binary.LittleEndian.Uint64(r.data[at+4:])
	}
	if length, _, _, ok := r.length(at); ok {
		_, next := r.read(at + length)
		if next || at+length == len(r.data) {
			g.end, g.whole = at+length, true
			return g
		}
	}
	for next := at + 1; next+recordMin <= len(r.data); next++ {
		if !r.plausible(next) {
			continue
		}
		if _, ok := r.read(next); ok {
			g.end = next
			break
		}
	}
	return g
}

// plausible reports whether a record may begin at a position, without reading it: by its time, which is 0 or after 2001.
func (r *recordReader) plausible(at int) bool {
	time := binary.LittleEndian.Uint64(r.data[at+12:])
	return (time == 0 || time > 1e18 && time < math.MaxInt64) && r.data[at+3]&0x7e == 0
}

// bounds returns the sequences between which those of a gap are; before is 0 for none.
func (g gap) bounds(b *block) (after, before uint64) {
	after, before = g.after, g.before
	if after == 0 {
		after = b.after
	}
	if before == 0 {
		before = b.before
	}
	return after, before
}

// messages returns the number of messages in a gap that were not deleted.
func (g gap) messages(b *block, deleted map[uint64]bool) int {
	after, before := g.bounds(b)
	if g.whole {
		if n := g.sequence &^ (erasedBit | tombstoneBit); n > after && n < before && deleted[n] ||
			g.end-g.start == recordMin && g.sequence&(erasedBit|tombstoneBit) != 0 {
			return 0
		}
		return 1
	}
	n := 0
	for seq := after + 1; seq < before && n < (g.end-g.start)/recordMin; seq++ {
		if !deleted[seq] {
			n++
		}
	}
	return max(n, 1)
}

// fill writes records of erased messages over the gaps of a block, and cuts off an end that is too short for one.
func (b *block) fill(f *os.File) error {
	h, err := recordHash(b.stream, b.number)
	if err != nil {
		return err
	}
	for _, g := range b.gaps {
		if g.end-g.start < recordMin {
			if err := f.Truncate(int64(g.start)); err != nil {
				return err
			}
			continue
		}
		filler := make([]byte, g.end-g.start)
		binary.LittleEndian.PutUint32(filler, uint32(len(filler))) // #nosec G115 -- at most the size of a block
		binary.LittleEndian.PutUint64(filler[4:], g.erased(b))
		body := len(filler) - recordChecksum
		checksum(h, filler[:recordHeader], nil, filler[recordHeader:body], filler[body:body])
		if _, err := f.WriteAt(filler, int64(g.start)); err != nil {
			return err
		}
	}
	return nil
}

// erased returns the sequence of the record that fills a gap: of the record that was there, if it is possible, so that the stream does
// not use it again. A record of a deletion is replaced by one of no message.
func (g gap) erased(b *block) uint64 {
	after, before := g.bounds(b)
	n := g.sequence &^ (erasedBit | tombstoneBit)
	switch {
	case g.whole && g.end-g.start == recordMin && g.sequence&tombstoneBit != 0:
		return tombstoneBit
	case n > after && (n < before || before == 0 && n-after < sequencesAhead):
		return n | erasedBit
	case before == 0 || after+1 < before:
		return (after + 1) | erasedBit
	}
	return tombstoneBit
}
