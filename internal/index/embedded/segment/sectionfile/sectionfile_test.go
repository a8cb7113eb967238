package sectionfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment/sectionfile"
)

// content has a section of each kind.
type content struct {
	bytes   []byte
	short   []uint32
	long    []uint64
	again   []uint32
	bitmaps []*roaring.Bitmap
	none    []*roaring.Bitmap
}

func (c *content) visit(v sectionfile.Visitor) sectionfile.Directory {
	v.Bytes(&c.bytes)
	v.U32s(&c.short)
	v.U64s(&c.long)
	v.U32s(&c.again)
	v.Bitmaps(&c.bitmaps)
	v.Bitmaps(&c.none)
	return sectionfile.Directory{
		Documents: 7, Spaces: []sectionfile.Space{{Path: "n.m", Parent: "n"}},
		Columns: []sectionfile.Column{{Name: "a", Path: "a", Type: "scaled_float", Scale: 0.5, Space: "n.m", Texts: 3, Packed: true}},
	}
}

func (c *content) String() string {
	return fmt.Sprint(string(c.bytes), c.short, c.long, c.again, c.bitmaps, c.none)
}

// example returns content whose numbers occur twice in the same memory.
func example() *content {
	numbers := make([]uint32, 200)
	for i := range numbers {
		numbers[i] = uint32(i * i)
	}
	return &content{
		bytes: []byte("eleven text"), short: numbers, long: []uint64{1, math.MaxUint64}, again: numbers,
		bitmaps: []*roaring.Bitmap{roaring.BitmapOf(1, 2, 3), roaring.BitmapOf(70_000)},
	}
}

// largest is a directory with room for that of content.
func largest() sectionfile.Directory {
	dir := (&content{}).visit(discard{})
	dir.Sections = slices.Repeat([]sectionfile.Section{{Length: math.MaxUint64}}, 9)
	return dir
}

// discard visits nothing.
type discard struct{}

func (discard) Bytes(*[]byte)              {}
func (discard) U32s(*[]uint32)             {}
func (discard) U64s(*[]uint64)             {}
func (discard) Bitmaps(*[]*roaring.Bitmap) {}

// streamed returns the file that WriteTo writes.
func streamed(tb testing.TB, visit func(sectionfile.Visitor) sectionfile.Directory) []byte {
	tb.Helper()
	var file bytes.Buffer
	n, err := sectionfile.WriteTo(&file, visit)
	if err != nil || n != int64(file.Len()) {
		tb.Fatalf("WriteTo returns %d, %v for %d bytes", n, err, file.Len())
	}
	return file.Bytes()
}

// written returns the file that a File writes.
func written(tb testing.TB, visit func(sectionfile.Visitor) sectionfile.Directory) []byte {
	tb.Helper()
	var out sectionfile.Memory
	f := sectionfile.New(&out, largest())
	if err := f.Finish(visit(f)); err != nil {
		tb.Fatal(err)
	}
	file, err := sectionfile.Load(io.NewSectionReader(&out, 0, out.Size()), out.Size())
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// TestRoundTrip writes a file in both ways, reads it at addresses that are aligned for numbers and at others, and writes it again.
func TestRoundTrip(t *testing.T) {
	want := example()
	for way, write := range map[string]func(testing.TB, func(sectionfile.Visitor) sectionfile.Directory) []byte{"streamed": streamed, "written": written} {
		file := write(t, want.visit)
		for shift := range 9 {
			moved := append(make([]byte, shift), file...)[shift:]
			r, dir, err := sectionfile.Open(moved)
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			var got content
			got.visit(r)
			if err := r.Done(); err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			if got.String() != want.String() {
				t.Errorf("%s, moved by %d: %s, want %s", way, shift, &got, want)
			}
			same := dir.Sections[3]
			dir.Sections = nil
			if diff := cmp.Diff(want.visit(discard{}), dir); diff != "" || same != (sectionfile.Section{Same: 2}) {
				t.Errorf("%s: the fourth section is %+v, the directory %s", way, same, diff)
			}
			if again := write(t, got.visit); !bytes.Equal(again, file) && (way == "written" || shift%4 == 0) { // else numbers are copied
				t.Errorf("%s, moved by %d: what was read makes another file", way, shift)
			}
		}
	}
}

// TestEqualContent stores equal sections once in a File, whatever their memory, unless they are short.
func TestEqualContent(t *testing.T) {
	once := example()
	once.again = slices.Clone(once.short)
	short := &content{short: []uint32{1, 2}, again: []uint32{1, 2}}
	other := example()
	other.again = slices.Clone(other.short)
	other.again[150]++
	for name, test := range map[string]struct {
		of   *content
		want bool
	}{"equal": {once, true}, "short": {short, false}, "another": {other, false}} {
		r, dir, err := sectionfile.Open(written(t, test.of.visit))
		if err != nil {
			t.Fatal(err)
		}
		var got content
		if got.visit(r); got.String() != test.of.String() || dir.Sections[3].Same == 2 != test.want {
			t.Errorf("%s: the fourth section is %+v; read %s, want %s", name, dir.Sections[3], &got, test.of)
		}
	}
}

// TestSize is the length of all sections.
func TestSize(t *testing.T) {
	c := example()
	want := int64(11 + 4*200 + 2*8 + 4*200)
	for _, rows := range c.bitmaps {
		want += int64(rows.GetSerializedSizeInBytes())
	}
	if got := sectionfile.Size(c.visit); got != want {
		t.Errorf("the size is %d, want %d", got, want)
	}
}

// causeOf returns why a file cannot be opened, or its sections not be read as visit does; "" when they can.
func causeOf(file []byte, visit func(sectionfile.Visitor)) string {
	r, _, err := sectionfile.Open(file)
	if err == nil {
		visit(r)
		err = r.Done()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestReadDamaged flips a bit of each byte of a file, and truncates it at each offset.
func TestReadDamaged(t *testing.T) {
	file := streamed(t, example().visit)
	visit := func(v sectionfile.Visitor) { (&content{}).visit(v) }
	if cause := causeOf(file, visit); cause != "" {
		t.Fatal(cause)
	}
	for at := range file {
		flipped := bytes.Clone(file)
		flipped[at] ^= 1 << (at % 8)
		if causeOf(flipped, visit) == "" || causeOf(file[:at], visit) == "" {
			t.Fatalf("a file that is damaged at %d is read", at)
		}
	}
}

// TestCauses reads files that are wrong in one way.
func TestCauses(t *testing.T) {
	file := streamed(t, example().visit)
	change := func(at int, to uint64) []byte {
		changed := bytes.Clone(file)
		binary.LittleEndian.PutUint64(changed[at:], to)
		return changed
	}
	of := func(visit func(sectionfile.Visitor)) []byte {
		return streamed(t, func(v sectionfile.Visitor) sectionfile.Directory {
			visit(v)
			return sectionfile.Directory{}
		})
	}
	rows, err := roaring.BitmapOf(1).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	three, numbers := []byte("abc"), []uint64{uint64(len(rows))}
	rows = append(rows, make([]byte, 16-len(rows)%8)...)
	tests := map[string]struct {
		file []byte
		read func(sectionfile.Visitor)
		want string
	}{
		"empty":           {nil, nil, "the length is 0"},
		"another file":    {change(0, 0), nil, "not a segment file"},
		"another version": {change(8, 2), nil, "the version is 2"},
		"another length":  {change(16, 9), nil, fmt.Sprintf("the length is %d, the header says 9", len(file))},
		"long directory":  {change(24, 1<<63), nil, "a section is truncated"},
		"checksum":        {change(32, 0), nil, "the checksum of section 0 is wrong"},
		"more is read":    {of(func(sectionfile.Visitor) {}), func(v sectionfile.Visitor) { v.Bytes(new([]byte)) }, "the directory has too few sections"},
		"less is read":    {file, func(v sectionfile.Visitor) { v.Bytes(new([]byte)) }, "the file has more sections than its directory"},
		"other numbers":   {of(func(v sectionfile.Visitor) { v.Bytes(&three) }), func(v sectionfile.Visitor) { v.U32s(new([]uint32)) }, "the length of a section is not a multiple of its item size"},
		"cut bitmap": {
			of(func(v sectionfile.Visitor) { v.U64s(&numbers); v.U64s(new([]uint64)) }), func(v sectionfile.Visitor) { v.Bitmaps(new([]*roaring.Bitmap)) }, "a bitmap is truncated",
		},
		"no bitmap": {
			of(func(v sectionfile.Visitor) { v.U64s(&numbers); v.U64s(new(make([]uint64, 4))) }),
			func(v sectionfile.Visitor) { v.Bitmaps(new([]*roaring.Bitmap)) }, "a bitmap is invalid",
		},
		"fewer sizes": {
			of(func(v sectionfile.Visitor) { v.U64s(&numbers); v.Bytes(&rows) }), func(v sectionfile.Visitor) { v.Bitmaps(new([]*roaring.Bitmap)) },
			"there are fewer bitmap sizes than bitmaps",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := causeOf(test.file, test.read); !strings.HasPrefix(got, test.want) || test.want == "" {
				t.Errorf("the cause is %q, want %q", got, test.want)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	tests := map[string]struct {
		r       io.Reader
		size    int64
		message string
	}{
		"negative":  {strings.NewReader(""), -1, "an index segment file is damaged"},
		"endless":   {strings.NewReader(""), 1 << 62, "an index segment file is damaged"},
		"truncated": {strings.NewReader("tuttiseg"), 1000, "an index segment file is damaged"},
		"broken":    {io.MultiReader(strings.NewReader("tuttiseg"), failing{broken}), 1000, "reading an index segment file"},
	}
	for name, test := range tests {
		file, err := sectionfile.Load(test.r, test.size)
		if file != nil || core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != test.message || name == "broken" && !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failing is a reader, a writer and an Output that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)           { return 0, f.err }
func (f failing) Write([]byte) (int, error)          { return 0, f.err }
func (f failing) ReadAt([]byte, int64) (int, error)  { return 0, f.err }
func (f failing) WriteAt([]byte, int64) (int, error) { return 0, f.err }
func (f failing) Truncate(int64) error               { return f.err }

// untruncated is an Output whose length cannot be set.
type untruncated struct {
	sectionfile.Memory
	failing
}

func (u *untruncated) ReadAt(b []byte, at int64) (int, error)  { return u.Memory.ReadAt(b, at) }
func (u *untruncated) WriteAt(b []byte, at int64) (int, error) { return u.Memory.WriteAt(b, at) }
func (u *untruncated) Truncate(size int64) error               { return u.failing.Truncate(size) }

// TestWriteErrors writes to outputs that fail, and a directory that is larger than was said.
func TestWriteErrors(t *testing.T) {
	broken := errors.New("the disk is broken")
	if _, err := sectionfile.WriteTo(failing{broken}, example().visit); core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, broken) {
		t.Errorf("WriteTo returns %v", err)
	}
	for name, test := range map[string]struct {
		out     sectionfile.Output
		largest sectionfile.Directory
		code    core.Code
	}{
		"broken":      {failing{broken}, largest(), core.CodeUnavailable},
		"untruncated": {&untruncated{failing: failing{broken}}, largest(), core.CodeUnavailable},
		"small":       {&sectionfile.Memory{}, sectionfile.Directory{}, core.CodeInternal},
	} {
		f := sectionfile.New(test.out, test.largest)
		if err := f.Finish(example().visit(f)); core.CodeOf(err) != test.code || test.code == core.CodeUnavailable && !errors.Is(err, broken) {
			t.Errorf("%s: Finish returns %v", name, err)
		}
	}
}

// TestMemory writes across pages, and reads up to the end.
func TestMemory(t *testing.T) {
	var m sectionfile.Memory
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	for from := 0; from < len(want); from += 70_000 {
		piece := want[from:min(from+70_000, len(want))]
		if n, err := m.WriteAt(piece, int64(from)); n != len(piece) || err != nil {
			t.Fatalf("WriteAt returns %d, %v", n, err)
		}
	}
	got := make([]byte, len(want))
	if n, err := m.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) || m.Size() != int64(len(want)) {
		t.Fatalf("ReadAt returns %d, %v, the size is %d", n, err, m.Size())
	}
	if err := m.Truncate(65_540); err != nil || m.Size() != 65_540 {
		t.Fatalf("Truncate returns %v, the size is %d", err, m.Size())
	}
	if n, err := m.ReadAt(got, 65_530); n != 10 || !errors.Is(err, io.EOF) || string(got[:10]) != "0123456789" {
		t.Errorf("ReadAt at the end returns %d, %v, %q", n, err, got[:n])
	}
}

func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		got, want bool
	}{
		"ascending":               {sectionfile.Ascending([]uint64{1, 2, 9}), true},
		"ascending, none":         {sectionfile.Ascending(nil), true},
		"ascending, twice":        {sectionfile.Ascending([]uint64{1, 2, 2}), false},
		"partition":               {sectionfile.IsPartition([]uint32{0, 2, 2, 5}, 5), true},
		"partition, none":         {sectionfile.IsPartition(nil, 0), false},
		"partition, not from 0":   {sectionfile.IsPartition([]uint32{1, 5}, 5), false},
		"partition, short":        {sectionfile.IsPartition([]uint32{0, 4}, 5), false},
		"partition, not in order": {sectionfile.IsPartition([]uint32{0, 4, 3, 5}, 5), false},
		"below":                   {sectionfile.AllBelow([]uint32{4, 0}, 5), true},
		"below, none":             {sectionfile.AllBelow(nil, 0), true},
		"below, equal":            {sectionfile.AllBelow([]uint32{0, 5}, 5), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %t", name, test.got)
		}
	}
}
