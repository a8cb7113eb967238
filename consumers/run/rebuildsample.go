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

// compareSample returns why the index must not be replaced if the filled one has another content for many documents of a sample than the
// index before and than their records: then something in the cluster, such as an ingest pipeline, changes what is written. Documents
// whose record cannot be fetched, or has a Request in the queue, are not compared.
func (e *jobEnd) compareSample(ctx context.Context, job core.Job, s sample) (*core.JobError, error) {
	var mu sync.Mutex
	var differ []string
	compared := 0
	err := e.sweeper.eachUntilJobEnds(ctx, job, s.ids, func(ctx context.Context, id string) error {
		record, same, err := e.sameInBoth(ctx, job, id)
		mu.Lock()
		defer mu.Unlock()
		if same || record != "" {
			compared++
		}
		if record != "" {
			differ = append(differ, record)
		}
		return err
	})
	if err != nil || len(differ) == 0 {
		return nil, err
	}
	pending, err := e.Requests.PendingRecords(ctx, e.Repository.Code, "")
	if err != nil {
		return nil, err
	}
	different := 0
	for _, record := range differ {
		if _, changes := pending[record]; changes {
			continue
		}
		e.log.Warn("a document of the new index is not that of its record", "job_id", job.ID, "record_id", record)
		different++
	}
	if float64(different) <= guardShare*float64(compared) {
		return nil, nil
	}
	return &core.JobError{Code: core.JobErrorContentDiffers, Message: fmt.Sprintf(
		"%d of %d sampled documents of the new index differ from their records. Look for an ingest pipeline that a template of the cluster "+
			"attaches to the index, or run again with force to replace the index nevertheless", different, compared)}, nil
}

// sameInBoth reports whether a document of the filled index has the content of the one in the index before, or of its record. If neither,
// it returns the id of the record; "" and false when the record cannot be compared.
func (e *jobEnd) sameInBoth(ctx context.Context, job core.Job, id string) (differs string, same bool, err error) {
	filled, found, err := e.Index.Get(ctx, e.indexOf(job), id)
	if err != nil || !found {
		return "", false, err
	}
	before, found, err := e.Index.Get(ctx, e.Repository.IndexName, id)
	if err != nil || found && bytes.Equal(before.Source, filled.Source) {
		return "", err == nil, err
	}
	req := e.childRequest(job, core.ScopeRecord, gjson.GetBytes(filled.Source, e.Repository.Fields.Organization).String())
	if req.RecordID = id; e.Split != nil {
		req.RecordID = gjson.GetBytes(filled.Source, e.Repository.Fields.ID).String()
	}
	rec, _, err := e.Fetcher.Record(ctx, req, func() error { return nil })
	defer rec.Release()
	if err != nil || !rec.Indexable || rec.TooLarge != nil {
		return "", false, ctx.Err()
	}
	if e.Split == nil {
		same = isPart(filled.Source, e.Document(nil, rec))
	} else if err := e.Split(rec, func(of string, document []byte) error {
		same = same || of == id && isPart(filled.Source, document)
		return nil
	}); err != nil {
		return "", false, nil // the record has become unusable
	}
	if same {
		return "", true, nil
	}
	return req.RecordID, false, nil
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
