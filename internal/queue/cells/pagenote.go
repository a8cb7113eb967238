package cells

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// KeyPages is the Prefix of the keys that store the record ids of the pages of lists being read.
const KeyPages = "pages."

// PageNotes holds notes about the pages of lists that jobs read.
type PageNotes struct{ bucket *Bucket }

func pagesKey(jobID, organization string) string {
	return KeyPages + subjects.EncodeToken(jobID) + "." + subjects.EncodeToken(organization) + "."
}

// NotePage stores the hashes of the ids on a page of an organization's list, in place of an earlier note of the page.
// reading counts how often the list was restarted.
func (p *PageNotes) NotePage(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error {
	return p.note(ctx, pagesKey(jobID, organization), reading, page, ids)
}

// keyInvalid is the key part for the ids of the records that a list showed as not to be indexed.
const keyInvalid = "invalid."

// NoteInvalid stores the hashes of the ids of the records that a page showed as not to be indexed, in place of an earlier note of the page.
func (p *PageNotes) NoteInvalid(ctx context.Context, jobID, organization string, reading, page int, ids []uint64) error {
	return p.note(ctx, pagesKey(jobID, organization)+keyInvalid, reading, page, ids)
}

func (p *PageNotes) note(ctx context.Context, list string, reading, page int, ids []uint64) error {
	data := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		data = binary.LittleEndian.AppendUint64(data, id)
	}
	return natsconn.WrapError("noting the ids of a page", p.bucket.Put(ctx, list+strconv.Itoa(reading)+"."+strconv.Itoa(page), data))
}

// NotedIDs returns the distinct ids on the pages up to and including last, sorted, in one reading of an organization's list.
func (p *PageNotes) NotedIDs(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error) {
	return p.noted(ctx, pagesKey(jobID, organization), reading, last)
}

// NotedInvalid returns the distinct ids that NoteInvalid stored for the pages up to and including last, sorted, in one reading of an
// organization's list.
func (p *PageNotes) NotedInvalid(ctx context.Context, jobID, organization string, reading, last int) ([]uint64, error) {
	return p.noted(ctx, pagesKey(jobID, organization)+keyInvalid, reading, last)
}

func (p *PageNotes) noted(ctx context.Context, list string, reading, last int) ([]uint64, error) {
	var ids []uint64
	err := p.eachNoted(ctx, list, reading, last+1, func(id uint64) { ids = append(ids, id) })
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// IDsOnEarlierPages returns those of ids that are on a page below the given one, in one reading of an organization's list.
// Its memory does not grow with the list.
func (p *PageNotes) IDsOnEarlierPages(
	ctx context.Context, jobID, organization string, reading, page int, ids []uint64,
) (map[uint64]struct{}, error) {
	asked := make(map[uint64]struct{}, len(ids))
	for _, id := range ids {
		asked[id] = struct{}{}
	}
	noted := make(map[uint64]struct{})
	err := p.eachNoted(ctx, pagesKey(jobID, organization), reading, page, func(id uint64) {
		if _, is := asked[id]; is {
			noted[id] = struct{}{}
		}
	})
	return noted, err
}

// eachNoted calls each for every id that was noted for the pages below the given one, in one reading of a list.
func (p *PageNotes) eachNoted(ctx context.Context, list string, reading, below int, each func(id uint64)) error {
	filter := Prefix + list + strconv.Itoa(reading) + "."
	err := natsread.All(ctx, p.bucket.Conn, p.bucket.Stream, filter+"*", func(m natsread.Message) error {
		n, err := strconv.Atoi(strings.TrimPrefix(m.Subject, filter))
		if err != nil || len(m.Data)%8 != 0 {
			return core.NewError(core.CodeInternal, fmt.Sprintf("the note of a page has %d bytes", len(m.Data)))
		}
		if n >= below {
			return nil
		}
		for data := m.Data; len(data) > 0; data = data[8:] {
			each(binary.LittleEndian.Uint64(data))
		}
		return nil
	})
	return natsconn.WrapError("reading the noted ids", err)
}

// keyLate is the key part for the ids of records that the pages of a list requested one by one.
const keyLate = "late."

// maxPerNote is the largest number of ids in one note: 1000 of the longest ids fit into a message.
const maxPerNote = 1000

// NoteRequestedIDs stores the ids of records that a page of an organization's list requested one by one, under the page's epoch.
func (p *PageNotes) NoteRequestedIDs(ctx context.Context, jobID, organization string, page, epoch int, ids []string) error {
	return natsconn.WrapError("noting the late records of a page",
		p.putIDs(ctx, fmt.Sprintf("%s%s%d.%d", pagesKey(jobID, organization), keyLate, page, epoch), ids))
}

// putIDs stores ids under keys that begin with one, followed by the number of a part.
func (p *PageNotes) putIDs(ctx context.Context, key string, ids []string) error {
	part := 0
	for chunk := range slices.Chunk(ids, maxPerNote) {
		var data []byte
		for _, id := range chunk {
			data = append(binary.AppendUvarint(data, uint64(len(id))), id...)
		}
		if err := p.bucket.Put(ctx, key+"."+strconv.Itoa(part), data); err != nil {
			return err
		}
		part++
	}
	return nil
}

// appendIDs appends the ids of a part that putIDs has stored.
func appendIDs(ids []string, data []byte) ([]string, error) {
	for len(data) > 0 {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return ids, core.NewError(core.CodeInternal, "a note of ids is cut short")
		}
		end := n + int(size)
		ids, data = append(ids, string(data[n:end])), data[end:]
	}
	return ids, nil
}

// RequestedIDs returns the ids that were noted for pages, a map of page numbers to epochs, each id once.
func (p *PageNotes) RequestedIDs(ctx context.Context, jobID, organization string, pages map[int]int) ([]string, error) {
	var ids []string
	filter := Prefix + pagesKey(jobID, organization) + keyLate
	err := natsread.All(ctx, p.bucket.Conn, p.bucket.Stream, filter+">", func(m natsread.Message) error {
		var page, epoch, part int
		if _, err := fmt.Sscanf(strings.TrimPrefix(m.Subject, filter), "%d.%d.%d", &page, &epoch, &part); err != nil {
			return core.WrapError(core.CodeInternal, "decoding the key of a note of late records", err)
		}
		if noted, is := pages[page]; !is || noted != epoch {
			return nil
		}
		var err error
		ids, err = appendIDs(ids, m.Data)
		return err
	})
	slices.Sort(ids)
	return slices.Compact(ids), natsconn.WrapError("reading the late records", err)
}

// keySwept is the key part, in place of an organization's, of the ids of documents that a sweep removes: they stay when the notes of the list
// are forgotten. It is no organization's, as no text in base64url has this length.
const keySwept = "swept."

func sweptKey(jobID string, step int) string {
	return KeyPages + subjects.EncodeToken(jobID) + "." + keySwept + strconv.Itoa(step) + "."
}

// NoteSwept stores the ids of an organization's documents that a step of a job's sweep is about to remove, beside those of earlier calls.
func (p *PageNotes) NoteSwept(ctx context.Context, jobID, organization string, step int, ids []string) error {
	key := sweptKey(jobID, step) + subjects.EncodeToken(organization) + "." + uuid.NewString()
	return natsconn.WrapError("noting the documents that a sweep removes", p.putIDs(ctx, key, ids))
}

// Swept returns what NoteSwept has stored for a step, by organization, each id once; organization is empty for all.
func (p *PageNotes) Swept(ctx context.Context, jobID, organization string, step int) (map[string][]string, error) {
	swept := map[string][]string{}
	list := Prefix + sweptKey(jobID, step)
	filter := list + ">"
	if organization != "" {
		filter = list + subjects.EncodeToken(organization) + ".>"
	}
	err := natsread.All(ctx, p.bucket.Conn, p.bucket.Stream, filter, func(m natsread.Message) error {
		token, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, list), ".")
		of, err := subjects.DecodeToken(token)
		if err == nil {
			swept[of], err = appendIDs(swept[of], m.Data)
		}
		return err
	})
	for of, ids := range swept {
		slices.Sort(ids)
		swept[of] = slices.Compact(ids)
	}
	return swept, natsconn.WrapError("reading the documents that a sweep removes", err)
}

// ForgetPages removes the notes of an organization's list, or of every list of the job when organization is empty.
func (p *PageNotes) ForgetPages(ctx context.Context, jobID, organization string) error {
	key := KeyPages + subjects.EncodeToken(jobID) + ".>"
	if organization != "" {
		key = pagesKey(jobID, organization) + ">"
	}
	return natsconn.WrapError("forgetting the ids of pages", p.bucket.Purge(ctx, Prefix+key))
}
