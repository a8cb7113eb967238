package client

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"

	"tutti/internal/core"
)

// maxEventBytes bounds one event of a stream.
const maxEventBytes = 4 << 20

// serverEvent is one event of a stream.
type serverEvent struct {
	name string
	data []byte
}

// eventReader reads a stream of server-sent events (HTML standard, section 9.2.6).
type eventReader struct {
	in *bufio.Reader
	// afterCR is true when a line feed that follows belongs to the previous line end.
	afterCR bool
	begun   bool
	// lastID is the id of the last event, sent when the stream is resumed.
	lastID string
	// retry is the server's reconnection time, zero when not set.
	retry time.Duration
}

func newEventReader(in io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(in)} }

// next returns the next event. It returns io.EOF at the end of the stream, where an event without a final empty line is dropped;
// CodeTooLarge for an event over maxEventBytes.
func (r *eventReader) next() (serverEvent, error) {
	var e serverEvent
	var data bytes.Buffer
	id, size, some := r.lastID, 0, false
	for {
		line, err := r.line()
		if err != nil {
			return serverEvent{}, err
		}
		if len(line) == 0 {
			r.lastID = id
			if some {
				e.data = data.Bytes()
				return e, nil
			}
			e.name, size = "", 0
			continue
		}
		if size += len(line); size > maxEventBytes {
			return serverEvent{}, tooLargeEvent()
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.name = value
		case "data":
			if some {
				data.WriteByte('\n')
			}
			data.WriteString(value)
			some = true
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end (CR LF, LF or CR); a line without an end is dropped.
func (r *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return nil, err
		}
		if b == '\n' && r.afterCR {
			r.afterCR = false
			continue
		}
		r.afterCR = b == '\r'
		if b == '\n' || b == '\r' {
			break
		}
		if line = append(line, b); len(line) > maxEventBytes {
			return nil, tooLargeEvent()
		}
	}
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line, nil
}

func tooLargeEvent() error {
	return core.NewError(core.CodeTooLarge, "the server sent an event that is too large")
}
