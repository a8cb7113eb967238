package segment_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/embedded/segment/dictionary"
	"tutti/internal/index/embedded/segment/sectionfile"
)

// fileOf returns the file of a segment.
func fileOf(tb testing.TB, s *segment.Segment) []byte {
	tb.Helper()
	var file bytes.Buffer
	if _, err := s.WriteTo(&file); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// smallFile returns a segment whose file has every kind of section, and that file.
func smallFile(tb testing.TB) (*segment.Segment, []byte) {
	tb.Helper()
	r := random{rand.New(rand.NewPCG(1, 2))}
	var parts []*segment.Segment
	docs := r.documents(tb, 300)
	for i := range 3 {
		parts = append(parts, builtOf(tb, parse(tb, mixedMapping), docs[100*i:100*i+100]))
	}
	s := segment.Merge(parts, nil)
	return s, fileOf(tb, s)
}

// reseal recomputes the checksums of a modified file, as far as its directory can be read.
func reseal(file []byte) {
	const headerSize, trailerSize = 32, 8
	padded := func(n uint64) uint64 { return (n + 7) / 8 * 8 }
	if len(file) < headerSize {
		return
	}
	binary.LittleEndian.PutUint64(file[16:], uint64(len(file)))
	at, length := uint64(0), headerSize+padded(binary.LittleEndian.Uint64(file[24:]))
	dir := sectionfile.Directory{}
	table := crc32.MakeTable(crc32.Castagnoli)
	for number := uint32(0); ; number++ {
		if length > uint64(len(file)) || at+length+trailerSize > uint64(len(file)) {
			return
		}
		end := at + length
		binary.LittleEndian.PutUint32(file[end:], crc32.Checksum(file[at:end], table))
		if number == 0 {
			if json.Unmarshal(file[headerSize:headerSize+binary.LittleEndian.Uint64(file[24:])], &dir) != nil {
				return
			}
		}
		for int(number) < len(dir.Sections) && dir.Sections[number].Same > 0 {
			number++
		}
		if int(number) >= len(dir.Sections) {
			return
		}
		at, length = end+trailerSize, padded(dir.Sections[number].Length)
	}
}

const damagedMessage = "an index segment file is damaged"

// TestReadDamaged flips a bit of many bytes of a file, and truncates it at as many offsets.
func TestReadDamaged(t *testing.T) {
	_, file := smallFile(t)
	read := func(t *testing.T, what string, file []byte, size int64) {
		t.Helper()
		s, err := segment.Read(bytes.NewReader(file), size)
		if s != nil || core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != damagedMessage {
			t.Fatalf("%s: %v, %s %q", what, s, core.CodeOf(err), core.MessageOf(err))
		}
	}
	step := max(1, len(file)/500)
	for at := 0; at < len(file); at += step {
		flipped := bytes.Clone(file)
		flipped[at] ^= 1 << (at % 8)
		read(t, fmt.Sprint("flipped at ", at), flipped, int64(len(flipped)))
		read(t, fmt.Sprint("cut at ", at), file[:at], int64(at))
		read(t, fmt.Sprint("short at ", at), file[:at], int64(len(file)))
	}
	read(t, "longer", append(bytes.Clone(file), make([]byte, 8)...), int64(len(file)+8))
	read(t, "negative", file, -1)
	read(t, "endless", file, 1<<62)
	later := bytes.Clone(file)
	binary.LittleEndian.PutUint32(later[8:], 2)
	reseal(later)
	read(t, "of a later version", later, int64(len(later)))
}

// TestReadFails reads from and writes to a failing disk.
func TestReadFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	_, err := segment.Read(io.MultiReader(strings.NewReader("tuttiseg"), failing{broken}), 1000)
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "reading an index segment file" || !errors.Is(err, broken) {
		t.Errorf("the error is %s %v", core.CodeOf(err), err)
	}
	s, _ := smallFile(t)
	_, err = s.WriteTo(failing{broken})
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "writing an index segment file" || !errors.Is(err, broken) {
		t.Errorf("the error is %s %v", core.CodeOf(err), err)
	}
}

// failing is a reader and writer that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestWriteAgain writes a segment that was read, and expects the same file.
func TestWriteAgain(t *testing.T) {
	s, file := smallFile(t)
	read := reread(t, s)
	if !bytes.Equal(fileOf(t, read), file) {
		t.Error("a segment that was read has another file")
	}
}

// TestPacked merges so many texts that they are packed.
func TestPacked(t *testing.T) {
	const n = dictionary.MaxPlain + 500
	tree := parse(t, `{"properties":{"id":{"type":"keyword"},"again":{"type":"keyword"},"name":{"type":"keyword"},
		"n":{"type":"nested","properties":{"id":{"type":"keyword"}}}}}`)
	r := random{rand.New(rand.NewPCG(3, 4))}
	var docs []numbered
	for i := range n {
		id := r.uuid()
		body, err := json.Marshal(map[string]any{
			"id": id, "again": id, "n": []map[string]string{{"id": id}, {"id": "x"}},
			"name": fmt.Sprintf("%s.%d\x01\x02\x03%x %s", id, i%7, r.Uint64(), strings.Repeat("é", r.IntN(40))),
		})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, numbered{uint64(i), fmt.Sprint("doc-", i), body})
	}
	paths, fields := []string{"", "n"}, []string{"_id", "id", "again", "name", "n.id"}
	whole := builtOf(t, tree, docs)
	parts := []*segment.Segment{builtOf(t, tree, docs[:n/2]), builtOf(t, tree, docs[n/2:])}
	merged := segment.Merge(parts, nil)
	want := strings.Split(describe(t, whole, paths, fields), "\n")
	for name, s := range map[string]*segment.Segment{
		"merged": merged, "read": reread(t, merged), "merged again": segment.Merge([]*segment.Segment{reread(t, merged)}, nil),
	} {
		if diff := cmp.Diff(want, strings.Split(describe(t, s, paths, fields), "\n")); diff != "" {
			t.Errorf("%s: %.2000s", name, diff)
		}
	}
	if packed, plain := len(fileOf(t, merged)), len(fileOf(t, whole)); packed*3 > plain*2 {
		t.Errorf("packed it takes %d bytes, and %d when not", packed, plain)
	}
	// Few values of a packed column remain.
	dead := roaring.New()
	dead.AddRange(100, n)
	few := segment.Merge([]*segment.Segment{merged}, []*roaring.Bitmap{dead})
	if diff := cmp.Diff(describe(t, builtOf(t, tree, docs[:100]), paths, fields), describe(t, few, paths, fields)); diff != "" {
		t.Errorf("%.2000s", diff)
	}
}

// FuzzRead changes bytes of a file, and recomputes its checksums when seal is set. A file that is accepted can be read without
// going out of bounds.
func FuzzRead(f *testing.F) {
	_, file := smallFile(f)
	f.Add(uint32(0), []byte{1}, false)
	f.Add(uint32(24), []byte{1}, true)
	f.Add(uint32(40), []byte(`"documents":9`), true)
	f.Add(uint32(len(file)/2), []byte{255, 255, 255, 255}, true)
	f.Fuzz(func(t *testing.T, at uint32, change []byte, seal bool) {
		changed := bytes.Clone(file)
		copy(changed[int(at)%len(changed):], change)
		same := bytes.Equal(changed, file)
		if seal {
			reseal(changed)
		}
		s, err := segment.Read(bytes.NewReader(changed), int64(len(changed)))
		switch {
		case err == nil && !same && !seal:
			t.Fatal("a damaged file is read")
		case err != nil && (core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != damagedMessage):
			t.Fatalf("the error is %s %q", core.CodeOf(err), core.MessageOf(err))
		case err == nil:
			visit(s)
		}
	})
}

// TestReadInconsistent sets each number of a file behind its directory to another, with right checksums: a file that is accepted can be
// read without going out of bounds.
func TestReadInconsistent(t *testing.T) {
	tree := parse(t, `{"properties":{"word":{"type":"keyword"},"whole":{"type":"long"},"file":{"type":"nested","properties":{"id":{"type":"keyword"}}}}}`)
	file := fileOf(t, build(t, tree, `{"word":["a","b"],"whole":[1,2],"file":[{"id":"x"},{"id":"y"}]}`, `{"word":"b","whole":3,"file":{"id":["x","z"]}}`, `{}`))
	accepted := 0
	for at := 32 + int(binary.LittleEndian.Uint64(file[24:]))/8*8 + 16; at+4 <= len(file); at += 4 {
		for _, number := range []uint32{3, 1 << 31} {
			changed := bytes.Clone(file)
			binary.LittleEndian.PutUint32(changed[at:], number)
			reseal(changed)
			s, err := segment.Read(bytes.NewReader(changed), int64(len(changed)))
			switch {
			case err == nil:
				visit(s)
				accepted++
			case core.MessageOf(err) != damagedMessage:
				t.Fatal(err)
			}
		}
	}
	if rejected := len(file)/2 - accepted; accepted == 0 || rejected < accepted/10 {
		t.Errorf("%d files are accepted, %d rejected", accepted, rejected)
	}
}

// visit reads everything in a segment.
func visit(s *segment.Segment) {
	for d := range s.Documents() {
		_ = s.ID(uint32(d))
	}
	for _, field := range mixedFields() {
		c := s.Column(field)
		if c == nil {
			continue
		}
		_ = values(s, field)
		for o := range c.Size() {
			if !c.Numeric() {
				c.FindText(string(c.Text(o)))
			}
			c.Postings(o)
			c.AddRows(roaring.New(), o, o+1)
		}
		c.AddRows(roaring.New(), 0, c.Size())
		c.AddRows(roaring.New(), 1, c.Size())
	}
	segment.Merge([]*segment.Segment{s}, nil)
}

// TestShared merges documents with equal slices, which are stored once in memory and in the file.
func TestShared(t *testing.T) {
	tree := parse(t, `{"properties":{"ANY":{"type":"keyword"},"id":{"type":"keyword"},"again":{"type":"keyword"},"one":{"type":"nested"}}}`)
	merged := func(format string) *segment.Segment {
		b := segment.NewBuilder(tree)
		for i := range 1000 {
			id := fmt.Sprintf("doc-%d", 7919*i%1000)
			if err := b.Add(uint64(i), id, fmt.Appendf(nil, format, id)); err != nil {
				t.Fatal(err)
			}
		}
		return segment.Merge([]*segment.Segment{b.Segment()}, nil)
	}
	once, twice := merged(`{"ANY":"a","id":%[1]q,"one":{}}`), merged(`{"ANY":"a","id":%[1]q,"one":{},"again":%[1]q}`)
	file := fileOf(t, twice)
	for name, sizes := range map[string][2]int{
		"merged": {len(fileOf(t, once)), len(file)}, "read": {len(fileOf(t, reread(t, once))), len(fileOf(t, reread(t, twice)))},
	} {
		if more := sizes[1] - sizes[0]; more > 1000 {
			t.Errorf("%s: the same ids again take %d bytes", name, more)
		}
	}
	for name, s := range map[string]*segment.Segment{"merged": twice, "read": reread(t, twice)} {
		if &s.Span("one")[0] != &s.Parents("one")[0] {
			t.Errorf("%s: elements without siblings do not share their numbers", name)
		}
	}
	same := regexp.MustCompile(`"same":\d\d`).FindIndex(file)
	if same == nil {
		t.Fatal("no section is shared")
	}
	copy(file[same[0]:], `"same":99`) // no such section
	reseal(file)
	if _, err := segment.Read(bytes.NewReader(file), int64(len(file))); core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != damagedMessage {
		t.Errorf("a section that is the same as a later one returns %v", err)
	}
}

// TestEarlierFile: a file of an earlier release, whose directory does not say so, lacks the values of some types.
func TestEarlierFile(t *testing.T) {
	tree := parse(t, `{"properties":{"k":{"type":"keyword"}}}`)
	var file bytes.Buffer
	if _, err := build(t, tree, `{"k":"a"}`).WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	earlier := bytes.Replace(file.Bytes(), []byte(`,"forms":1`), []byte(`          `), 1)
	reseal(earlier)
	for name, c := range map[string]struct {
		file []byte
		want bool
	}{"of an earlier release": {earlier, false}, "of this one": {file.Bytes(), true}} {
		s, err := segment.Read(bytes.NewReader(c.file), int64(len(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"geo_point", "date_range"} {
			if got := s.Covers(parse(t, `{"properties":{"o":{"properties":{"f":{"type":"`+kind+`"}}}}}`)); got != c.want {
				t.Errorf("%s: it covers a %s: %t", name, kind, got)
			}
		}
		if !s.Covers(tree) {
			t.Errorf("%s does not cover its own mapping", name)
		}
	}
}
