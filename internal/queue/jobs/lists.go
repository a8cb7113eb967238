package jobs

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
)

// keyIDs is the prefix of the keys that store the ids of jobs of core.ScopeIDs, a page of ids with their outcomes each.
const keyIDs = "ids."

// Lists holds the lists of ids that jobs index, as long as the jobs.
type Lists struct{ jobs *Jobs }

// idsKey returns the key of a page of an organization's ids.
func idsKey(jobID, organization string, page int) string {
	return keyIDs + subjects.EncodeToken(jobID) + "." + subjects.EncodeToken(organization) + "." + strconv.Itoa(page)
}

// hashesKey returns the key of the hashes of an organization's ids, which finds the page of an id. Lists of one page have none.
func hashesKey(jobID, organization string) string {
	return keyIDs + subjects.EncodeToken(jobID) + "." + subjects.EncodeToken(organization) + ".hashes"
}

// hashSize is the size of the hash of an id, in bytes: those of idlist.MaxIDs fit into one message.
const hashSize = 4

func hashOf(id string) uint32 { return crc32.ChecksumIEEE([]byte(id)) }

// partKeys selects the organizations of a job, its list of ids and the notes of its pages.
func partKeys(jobID string) []string {
	token := subjects.EncodeToken(jobID)
	return []string{organizationKey(jobID, "") + ">", keyIDs + token + ".>", cells.KeyPages + token + ".>", summaryKeys(jobID) + ">"}
}

// Open returns the number of jobs over lists of a repository that have not ended.
func (l *Lists) Open(ctx context.Context, repository string) (int, error) {
	jobs, err := readKeys[struct {
		Repository string        `json:"repository"`
		Scope      core.Scope    `json:"scope"`
		State      core.JobState `json:"state"`
	}](ctx, l.jobs, keyJob+"*")
	open := 0
	for _, job := range jobs {
		if job.Repository == repository && job.Scope == core.ScopeIDs && !job.State.Final() {
			open++
		}
	}
	return open, natsconn.WrapError("counting the lists of ids", err)
}

// StoreList stores the list of a job that does not exist yet, and an organization of the job for each part of it. What is stored
// is removed after a while if neither the job nor a Request of it follows.
func (l *Lists) StoreList(ctx context.Context, jobID string, list []idlist.List) error {
	for _, part := range list {
		page := 0
		for chunk := range slices.Chunk(part.IDs, idlist.IDsPerPage) {
			ids := make([]idlist.ID, len(chunk))
			for i, id := range chunk {
				ids[i].ID = id
			}
			data, err := json.Marshal(ids)
			if err != nil {
				return core.WrapError(core.CodeInternal, "encoding ids", err)
			}
			if err := l.jobs.bucket.Put(ctx, idsKey(jobID, part.Organization, page), data); err != nil {
				return natsconn.WrapError("storing the ids of a job", err)
			}
			page++
		}
		if err := l.storeHashes(ctx, jobID, part); err != nil {
			return err
		}
		last := page - 1
		run := core.OrganizationRun{Organization: part.Organization, State: core.JobQueued, DoneThrough: -1, LastPage: &last}
		run.Expect(int64(len(part.IDs)))
		if _, err := l.jobs.CreateOrganization(ctx, jobID, run); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lists) storeHashes(ctx context.Context, jobID string, part idlist.List) error {
	if part.Pages() <= 1 {
		return nil
	}
	hashes := make([]byte, 0, hashSize*len(part.IDs))
	for _, id := range part.IDs {
		hashes = binary.LittleEndian.AppendUint32(hashes, hashOf(id))
	}
	return natsconn.WrapError("storing the ids of a job", l.jobs.bucket.Put(ctx, hashesKey(jobID, part.Organization), hashes))
}

// Find returns an id of an organization's part of a list, with its outcome; CodeNotFound if the list does not have it. It reads at most
// the hashes and the pages that may have the id.
func (l *Lists) Find(ctx context.Context, jobID, organization, id string) (idlist.ID, error) {
	first, err := l.IDPage(ctx, jobID, organization, 0)
	if at := indexOf(first, id); at >= 0 {
		return first[at], nil
	}
	if err != nil || len(first) < idlist.IDsPerPage {
		return idlist.ID{}, cmp.Or(err, noSuchID())
	}
	entry, err := l.jobs.bucket.KV.Get(ctx, hashesKey(jobID, organization))
	if err != nil && !natsconn.IsNotFound(err) {
		return idlist.ID{}, natsconn.WrapError("reading the ids of a job", err)
	}
	var hashes []byte
	if err == nil { // otherwise the list has one page
		hashes = entry.Value()
	}
	hash, read := hashOf(id), 0
	for at := idlist.IDsPerPage; hashSize*(at+1) <= len(hashes); at++ {
		page := at / idlist.IDsPerPage
		if page == read || binary.LittleEndian.Uint32(hashes[hashSize*at:]) != hash {
			continue
		}
		read = page
		ids, err := l.IDPage(ctx, jobID, organization, page)
		if err != nil {
			return idlist.ID{}, err
		}
		if i := indexOf(ids, id); i >= 0 {
			return ids[i], nil
		}
	}
	return idlist.ID{}, noSuchID()
}

func indexOf(ids []idlist.ID, id string) int {
	return slices.IndexFunc(ids, func(listed idlist.ID) bool { return listed.ID == id })
}

func noSuchID() error { return core.NewError(core.CodeNotFound, "no such id in the list of this job") }

// DropList removes what StoreList has stored.
func (l *Lists) DropList(ctx context.Context, jobID string) error {
	for _, keys := range partKeys(jobID) {
		if err := l.jobs.bucket.Purge(ctx, cells.Prefix+keys); err != nil {
			return natsconn.WrapError("removing the ids of a job", err)
		}
	}
	return nil
}

// IDPage returns a page of an organization's ids, in the order of the list; CodeNotFound after the last one.
func (l *Lists) IDPage(ctx context.Context, jobID, organization string, page int) ([]idlist.ID, error) {
	var ids []idlist.ID
	_, _, err := l.jobs.get(ctx, idsKey(jobID, organization, page), &ids)
	if natsconn.IsNotFound(err) {
		return nil, noSuchPage()
	}
	return ids, natsconn.WrapError("reading the ids of a job", err)
}

// UpdateIDPage is Jobs.Update for a page of ids.
func (l *Lists) UpdateIDPage(
	ctx context.Context, jobID, organization string, page int, change func([]idlist.ID) error,
) ([]idlist.ID, error) {
	ids, err := update(ctx, l.jobs, idsKey(jobID, organization, page), func(ids *[]idlist.ID) error { return change(*ids) })
	if isMissing(err) {
		return nil, noSuchPage()
	}
	return ids, err
}

func noSuchPage() error { return core.NewError(core.CodeNotFound, "no such page of ids of this job") }
