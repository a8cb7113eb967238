package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// sampleSize is how many documents of a filled index are compared with the index before and with their records.
const sampleSize = 100

// sample holds the ids of random documents of those that were added.
type sample struct {
	ids   []string
	added int
}

func (s *sample) add(id string) {
	s.added++
	if len(s.ids) < sampleSize {
		s.ids = append(s.ids, id)
	} else if i := rand.IntN(s.added); i < sampleSize {
		s.ids[i] = id
	}
}

// differing is a document of the filled index that is neither that of the index before nor that of its record.
type differing struct{ id, organization, record string }

// compareSample returns why the index must not be replaced if many documents of a sample of the filled one have another content than
// those of the index before and than their records: then something in the cluster, such as an ingest pipeline, changes what is written.
// Documents whose record cannot be fetched are not compared. Those that differ are requested once more, since their records may have
// changed without a Request, and do not count while they have one in the queue.
func (e *jobEnd) compareSample(ctx context.Context, job core.Job, s sample) (*core.JobError, error) {
	differ, compared, err := e.differing(ctx, job, s.ids)
	if err != nil || len(differ) == 0 {
		return nil, err
	}
	records := make(map[string][]string) // by organization
	ids := make([]string, len(differ))
	for i, d := range differ {
		ids[i] = d.id
		if !slices.Contains(records[d.organization], d.record) {
			records[d.organization] = append(records[d.organization], d.record)
		}
	}
	late := job
	late.StartVersion = 0 // the Requests are newer than the pages
	for organization, ids := range records {
		if err := e.sweeper.publish(ctx, late, organization, ids); err != nil {
			return nil, err
		}
	}
	for organization, ids := range records {
		if _, err := e.sweeper.wait(ctx, job, organization, ids); err != nil {
			return nil, err
		}
	}
	if differ, _, err = e.differing(ctx, job, ids); err != nil {
		return nil, err
	}
	pending, err := e.Requests.PendingRecords(ctx, e.Repository.Code, "")
	if err != nil {
		return nil, err
	}
	different := 0
	for _, d := range differ {
		if _, changes := pending[d.record]; changes {
			continue
		}
		e.log.Warn("a document of the new index is not that of its record", "job_id", job.ID, "document_id", d.id, "record_id", d.record)
		different++
	}
	if float64(different) <= guardShare*float64(compared) {
		return nil, nil
	}
	return &core.JobError{Code: core.JobErrorContentDiffers, Message: fmt.Sprintf(
		"%d of %d sampled documents of the new index differ from their records. Look for an ingest pipeline that a template of the cluster "+
			"attaches to the index, or run again with force to replace the index nevertheless", different, compared)}, nil
}

// differing returns those documents that differ, and how many were compared.
func (e *jobEnd) differing(ctx context.Context, job core.Job, ids []string) (differ []differing, compared int, err error) {
	var mu sync.Mutex
	err = e.sweeper.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		d, is, err := e.compareOne(ctx, job, id)
		if !is || err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if compared++; d != nil {
			differ = append(differ, *d)
		}
		return nil
	})
	return differ, compared, err
}

// compareOne compares a document of the filled index with the one in the index before, then with its record. It returns the document if
// neither has its content, and reports whether it could be compared.
func (e *jobEnd) compareOne(ctx context.Context, job core.Job, id string) (d *differing, compared bool, err error) {
	filled, found, err := e.Index.Get(ctx, e.indexOf(job), id)
	if err != nil || !found {
		return nil, false, err
	}
	before, found, err := e.Index.Get(ctx, e.Repository.IndexName, id)
	if err != nil || found && bytes.Equal(before.Source, filled.Source) {
		return nil, err == nil, err
	}
	req := e.childRequest(job, core.ScopeRecord, gjson.GetBytes(filled.Source, e.Repository.Fields.Organization).String())
	if req.RecordID = id; e.Split != nil {
		req.RecordID = gjson.GetBytes(filled.Source, e.Repository.Fields.ID).String()
	}
	rec, _, err := e.Fetcher.Record(ctx, req, func() error { return nil })
	defer rec.Release()
	if err != nil || !rec.Indexable || rec.TooLarge != nil {
		return nil, false, ctx.Err()
	}
	same := false
	if e.Split == nil {
		same = isPart(filled.Source, e.Document(nil, rec))
	} else if err := e.Split(rec, func(of string, document []byte) error {
		same = same || of == id && isPart(filled.Source, document)
		return nil
	}); err != nil {
		return nil, false, nil // the record has become unusable
	}
	if !same {
		d = &differing{id, req.Organization, req.RecordID}
	}
	return d, true, nil
}

// isPart reports whether a stored document has nothing but what a document has: a mapping may exclude fields from what is stored.
func isPart(stored, document []byte) bool {
	var part, whole any
	return decode(stored, &part) && decode(document, &whole) && isPartOf(part, whole)
}

func decode(raw []byte, into *any) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into) == nil
}

func isPartOf(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		members, is := whole.(map[string]any)
		for name, value := range part {
			if member, has := members[name]; !has || !isPartOf(value, member) {
				return false
			}
		}
		return is
	case []any:
		items, is := whole.([]any)
		return is && slices.EqualFunc(part, items, isPartOf)
	default:
		return part == whole
	}
}
