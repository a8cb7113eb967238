package upstream

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"tutti/internal/core"
)

const (
	// maxDocument bounds a document that is read as a whole, in bytes.
	maxDocument = 16 << 20
	// maxMemoryWait is how long a record may wait for memory after its request.
	maxMemoryWait = time.Second
)

// errWaitedTooLong is returned by a Reserve that acquired the memory too late for the body being read.
var errWaitedTooLong = errors.New("upstream: the record waited for memory")

// Request is a request of a protocol's client, with the arguments of Client.Get.
type Request struct {
	Query    string
	Segments []string
	// Body, if not nil, is sent as JSON, by POST.
	Body []byte
	// Error interprets an error of Get, which may contain the upstream's error document; nil returns it unchanged.
	Error func(error) error
}

// get sends a request.
func (c *Client) get(ctx context.Context, r Request) (*Response, error) {
	answer, err := c.send(ctx, r.Body, r.Query, r.Segments)
	if err != nil && r.Error != nil {
		err = r.Error(err)
	}
	if errors.Is(err, core.ErrForeignNotFound) {
		c.cfg.Metrics.markDown(c.cfg.Repository)
	}
	return answer, err
}

// Names requests a document that lists names; list returns them, what names the document in messages.
func (c *Client) Names(ctx context.Context, r Request, what string, list func(document []byte) ([]*string, error)) ([]string, error) {
	var names []string
	err := c.Document(ctx, r, what, func(document []byte) error {
		given, err := list(document)
		if err != nil || given == nil || slices.Contains(given, nil) {
			return FormatError(what)
		}
		names = make([]string, len(given))
		for i, name := range given {
			names[i] = *name
		}
		return nil
	})
	return names, err
}

// Document requests a document of at most 16 MiB and calls read with it; what names it in messages. After an error of read, which is
// returned unchanged, the upstream counts as down.
func (c *Client) Document(ctx context.Context, r Request, what string, read func(document []byte) error) error {
	answer, err := c.get(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Close()
	document, err := io.ReadAll(io.LimitReader(answer, maxDocument+1))
	if err != nil {
		return err
	}
	if len(document) > maxDocument {
		return core.WrapError(core.CodeUpstream, "the upstream's "+what+" is too large", ErrTooLarge)
	}
	if err = read(document); err != nil {
		answer.MarkFailed()
	}
	return err
}

// Page requests a page and calls each for every record in order. read converts an Item; info returns the totals of a page that was
// read to its end. An error of each ends the page and is returned unchanged; after any other error the upstream counts as down.
func (c *Client) Page(ctx context.Context, r Request, read func(Item) (core.Record, error), info func(Envelope) (core.PageInfo, error),
	each func(core.Record) error,
) (core.PageInfo, error) {
	answer, err := c.get(ctx, r)
	if err != nil {
		return core.PageInfo{}, err
	}
	defer answer.Close()
	scanner, _ := c.scanners.Get().(*Scanner)
	defer c.scanners.Put(scanner)
	var refused error
	envelope, err := scanner.Page(answer, func(item Item) error {
		record, err := read(item)
		if err == nil {
			refused = each(record)
			err = refused
		}
		return err
	})
	if err == nil {
		var totals core.PageInfo
		if totals, err = info(envelope); err == nil {
			return totals, nil
		}
	}
	if refused == nil {
		answer.MarkFailed()
	}
	return core.PageInfo{Rows: max(envelope.Rows, 0)}, err
}

// Record requests one record, which read converts. After an ErrFormat of read the upstream counts as down.
func (c *Client) Record(ctx context.Context, r Request, read func(Item) (core.Record, error)) (core.Record, error) {
	scanner, _ := c.scanners.Get().(*Scanner)
	defer c.scanners.Put(scanner)
	answer, item, err := c.scanRecord(ctx, r, scanner)
	if err != nil {
		return core.Record{}, err
	}
	defer answer.Close()
	record, err := read(item)
	if errors.Is(err, ErrFormat) {
		answer.MarkFailed()
	}
	if err != nil {
		return core.Record{}, err
	}
	record.Release = answer.DetachMemory()
	return record, nil
}

// scanRecord requests one record and reads it with scanner. The Response must be closed; its memory holds the Item's Body.
//
// A record that waited for memory for more than a second is requested again while that memory is held, so that the age of its body
// depends on the upstream and not on the memory that others use. Each further request has more memory than the previous one, which
// bounds their number.
func (c *Client) scanRecord(ctx context.Context, r Request, scanner *Scanner) (*Response, Item, error) {
	var reserved int64
	var free func()
	for {
		answer, err := c.get(ctx, r)
		if err != nil {
			if free != nil {
				free()
			}
			return nil, Item{}, err
		}
		answer.single, answer.reserved, answer.free = true, reserved, free
		item, err := scanner.Record(answer, answer.Length)
		if err == nil {
			return answer, item, nil
		}
		waited := errors.Is(err, errWaitedTooLong)
		if waited {
			reserved, free = answer.reserved, answer.DetachMemory()
		} else {
			answer.MarkFailed()
		}
		answer.Close()
		if !waited {
			return nil, Item{}, err
		}
	}
}
