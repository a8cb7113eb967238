package client_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tutti/cmd/tutti/internal/client"
	"tutti/internal/core"
)

// TestReadEvents tests the rules of the HTML standard for streams of events.
func TestReadEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream      string
		names, data []string
		lastID      string
	}{
		"one":               {"id: 7\nevent: job\ndata: {}\n\n", []string{"job"}, []string{"{}"}, "7"},
		"without a name":    {"data: a\n\n", []string{""}, []string{"a"}, ""},
		"several lines":     {"data: a\ndata:b\ndata\ndata:  c\n\n", []string{""}, []string{"a\nb\n\n c"}, ""},
		"comments":          {": hello\n\n:\n: keep-alive\nevent: end\n:x\ndata: 1\n\n", []string{"end"}, []string{"1"}, ""},
		"CR LF":             {"event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n", []string{"a", "b"}, []string{"1", "2"}, ""},
		"CR":                {"event: a\rdata: 1\r\rdata: 2\r\r", []string{"a", ""}, []string{"1", "2"}, ""},
		"byte order mark":   {"\xef\xbb\xbfdata: 1\n\n", []string{""}, []string{"1"}, ""},
		"id without data":   {"id: 9\n\n", nil, nil, "9"},
		"id is kept":        {"id: 9\ndata: 1\n\ndata: 2\n\n", []string{"", ""}, []string{"1", "2"}, "9"},
		"id with a NUL":     {"id: 9\ndata: 1\n\nid: a\x00b\ndata: 2\n\n", []string{"", ""}, []string{"1", "2"}, "9"},
		"id is taken away":  {"id: 9\ndata: 1\n\nid\ndata: 2\n\n", []string{"", ""}, []string{"1", "2"}, ""},
		"name without data": {"event: a\n\ndata: 1\n\n", []string{""}, []string{"1"}, ""},
		"unknown fields":    {"colour: red\ndata: 1\nretry: soon\n\n", []string{""}, []string{"1"}, ""},
		"cut":               {"id: 1\ndata: 1\n\nid: 2\ndata: 2\n", []string{""}, []string{"1"}, "1"},
		"nothing":           {"", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(tt.stream), iotest.OneByteReader(strings.NewReader(tt.stream))} {
				names, data, lastID, err := client.ReadEvents(in)
				if !errors.Is(err, io.EOF) {
					t.Errorf("error %v, want EOF", err)
				}
				if diff := cmp.Diff(tt.names, names) + cmp.Diff(tt.data, data); diff != "" {
					t.Error(diff)
				}
				if lastID != tt.lastID {
					t.Errorf("last id %q, want %q", lastID, tt.lastID)
				}
			}
		})
	}
}

// TestReadEventsBounds: neither a line nor an event of many lines grows without bound.
func TestReadEventsBounds(t *testing.T) {
	t.Parallel()
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	for name, stream := range map[string]string{
		"line":  "data: " + strings.Repeat("x", client.MaxEventBytes+1),
		"lines": strings.Repeat(line, client.MaxEventBytes>>20+1) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, _, err := client.ReadEvents(strings.NewReader(stream))
			if core.CodeOf(err) != core.CodeTooLarge || core.MessageOf(err) != "the server sent an event that is too large" {
				t.Errorf("error %v", err)
			}
		})
	}
}

// FuzzReadEvents: the reader ends for any input, and an event read is read again after being written.
func FuzzReadEvents(f *testing.F) {
	for _, seed := range []string{"id: 7\nevent: job\ndata: {}\n\n", "data: a\r\n\rdata: b\n\n:x\n\n", "\xef\xbb\xbf:\r\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		names, data, lastID, err := client.ReadEvents(strings.NewReader(stream))
		if !errors.Is(err, io.EOF) && core.CodeOf(err) != core.CodeTooLarge {
			t.Fatalf("error %v", err)
		}
		var again strings.Builder
		for i, name := range names {
			again.WriteString("event: " + name + "\n")
			for line := range strings.SplitSeq(data[i], "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		again.WriteString("id: " + lastID + "\n\n")
		names2, data2, lastID2, _ := client.ReadEvents(strings.NewReader(again.String()))
		if diff := cmp.Diff(names, names2) + cmp.Diff(data, data2) + cmp.Diff(lastID, lastID2); diff != "" {
			t.Fatal(diff)
		}
	})
}
