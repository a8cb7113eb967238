package sweep

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/consumers/state"
	"tutti/internal/base/equality"
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
type differing struct {
	id, organization, record string
	version                  core.Version
}

// comparison is the result of comparing a document of the filled index.
type comparison int

const (
	equal comparison = iota // also if the document is gone
	different
	notCompared // its record could not be fetched
)

// sampler compares documents of a filled index with their records.
type sampler struct {
	cfg      Config
	requests *requests
}

// compareSample compares a sample of the documents of the filled index with those of the index before and with their records. The result's
// guard is why the index must not be replaced: many have another content, so something in the cluster, such as an ingest pipeline, changes
// what is written. Documents whose record cannot be fetched, or has a Request in the queue, are not compared. The others that differ are
// requested once more, since their records may have changed without a Request: they count unless they are then found equal or are rejected.
func (c *sampler) compareSample(ctx context.Context, job core.Job, filled sample) (all Result, err error) {
	differ, compared, err := c.differing(ctx, job, filled.ids)
	if err != nil || len(differ) == 0 {
		return all, err
	}
	pending, err := c.cfg.Requests.PendingRecords(ctx, c.cfg.Repository.Code, "")
	if err != nil {
		return all, err
	}
	differ = slices.DeleteFunc(differ, func(d differing) bool {
		_, changes := pending[d.record]
		return changes
	})
	records := make(map[string][]string) // by organization
	asOf := job
	for _, d := range differ {
		asOf.StartVersion = d.version // older than a removal that was processed since
		if err := c.requests.publish(ctx, asOf, d.organization, []string{d.record}); err != nil {
			return all, err
		}
		records[d.organization] = append(records[d.organization], d.record)
	}
	for organization, ids := range records {
		if _, err := c.requests.wait(ctx, job, organization, ids); err != nil {
			return all, err
		}
	}
	var mu sync.Mutex
	count := 0
	err = c.requests.eachUntilJobEnds(ctx, job, documentsOf(differ), func(ctx context.Context, id string) error {
		d, result, err := c.compareOne(ctx, job, id)
		if err != nil || result == equal {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if result == different && c.cfg.Outcomes.HasDeadLetter(d.organization, id) { // its Request was rejected: the document is that of an older record
			all.Rejected++
			return nil
		}
		c.cfg.Logger.Warn("a document of the new index is not that of its record", "job_id", job.ID, "document_id", id, "compared", result == different)
		count++
		return nil
	})
	if err == nil && float64(count) > GuardShare*float64(compared) {
		all.Guard = &core.JobError{Code: core.JobErrorContentDiffers, Message: fmt.Sprintf(
			"%d of %d sampled documents of the new index differ from their records. Look for an ingest pipeline that a template of the cluster "+
				"attaches to the index, or run again with force to replace the index nevertheless", count, compared)}
	}
	return all, err
}

func documentsOf(differ []differing) []string {
	ids := make([]string, len(differ))
	for i, d := range differ {
		ids[i] = d.id
	}
	return ids
}

// differing returns those documents that differ, and how many were compared.
func (c *sampler) differing(ctx context.Context, job core.Job, ids []string) (differ []differing, compared int, err error) {
	var mu sync.Mutex
	err = c.requests.eachUntilJobEnds(ctx, job, ids, func(ctx context.Context, id string) error {
		d, result, err := c.compareOne(ctx, job, id)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && result != notCompared {
			compared++
		}
		if result == different {
			differ = append(differ, d)
		}
		return err
	})
	return differ, compared, err
}

// compareOne compares a document of the filled index with the one in the index before, then with its record.
func (c *sampler) compareOne(ctx context.Context, job core.Job, id string) (d differing, result comparison, err error) {
	sampled, found, err := c.digest(ctx, core.NextAlias(c.cfg.Repository.IndexName), id)
	if err != nil || !found {
		return d, equal, err
	}
	before, found, err := c.digest(ctx, c.cfg.Repository.IndexName, id)
	if err != nil || found && before.sum == sampled.sum {
		return d, equal, err
	}
	req := state.Child(job, core.ScopeRecord, sampled.organization)
	if req.RecordID = id; c.cfg.Split != nil {
		req.RecordID = sampled.record
	}
	rec, _, err := c.cfg.Fetcher.Record(ctx, req, nil)
	defer rec.Release()
	if err != nil || !rec.Indexable || rec.TooLarge != nil {
		return d, notCompared, ctx.Err()
	}
	filled, found, err := c.cfg.Index.Get(ctx, core.NextAlias(c.cfg.Repository.IndexName), id)
	if err != nil || !found {
		return d, equal, err
	}
	same, rules := false, equality.New(c.cfg.Repository.Fields.Unordered)
	if c.cfg.Split == nil {
		same = rules.EqualWhereStored(filled.Source, c.cfg.Document(nil, rec))
	} else if err := c.cfg.Split(rec, func(of string, document []byte) error {
		same = same || of == id && rules.EqualWhereStored(filled.Source, document)
		return nil
	}); err != nil {
		return d, notCompared, nil // the record has become unusable
	}
	if same {
		return d, equal, nil
	}
	return differing{id, req.Organization, req.RecordID, filled.Version}, different, nil
}

// digest is what is kept of a document while another one is read: both may be large.
type digest struct {
	sum                  [sha256.Size]byte
	organization, record string
}

// digest returns that of a document of the index of an alias.
func (c *sampler) digest(ctx context.Context, alias, id string) (d digest, found bool, err error) {
	stored, found, err := c.cfg.Index.Get(ctx, alias, id)
	if err != nil || !found {
		return d, false, err
	}
	return digest{
		sum:          sha256.Sum256(stored.Source),
		organization: gjson.GetBytes(stored.Source, c.cfg.Repository.Fields.Organization).String(),
		record:       gjson.GetBytes(stored.Source, c.cfg.Repository.Fields.ID).String(),
	}, true, nil
}
