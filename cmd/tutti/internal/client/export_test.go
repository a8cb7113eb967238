package client

import "io"

// ReadEvents reads a stream of events to its end: names and data of the events, and the last id.
func ReadEvents(in io.Reader) (names, data []string, lastID string, err error) {
	r := newEventReader(in)
	for {
		e, err := r.next()
		if err != nil {
			return names, data, r.lastID, err
		}
		names, data = append(names, e.name), append(data, string(e.data))
	}
}

// MaxEventBytes exports maxEventBytes.
const MaxEventBytes = maxEventBytes
