package metadata

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/metadata/analysis"
)

// storageConcurrency is how many objects of an analysis are checked at one time.
const storageConcurrency = 4

// objectFile is a file of a stored analysis.
type objectFile struct {
	objectID, md5 string
	size          int64
}

// objectFiles returns the files of an analysis with the ids of their objects.
func objectFiles(body []byte) []objectFile {
	var files []objectFile
	gjson.GetBytes(body, "files").ForEach(func(_, f gjson.Result) bool {
		files = append(files, objectFile{objectID: f.Get("objectId").Str, md5: f.Get("fileMd5sum").Str, size: f.Get("fileSize").Int()})
		return true
	})
	return files
}

// mismatch is how an object differs from its file.
type mismatch int

const (
	matches mismatch = iota
	objectMissing
	sizeDiffers
	md5Differs
)

// checkStorage compares the files of an analysis with their objects in the storage, as Song does. Errors: CodeConflict
// (missing.storage.objects before mismatching.storage.object.sizes before mismatching.storage.object.checksums), CodeUnavailable
// after Config.StorageTimeout, and those of Storage.
func (cfg *Config) checkStorage(ctx context.Context, c *current, ignoreUndefinedMD5 bool) error {
	timed, cancel := context.WithTimeout(ctx, cfg.StorageTimeout)
	defer cancel()
	files := objectFiles(c.Bytes())
	found := make([]mismatch, len(files))
	group, checks := errgroup.WithContext(timed)
	group.SetLimit(storageConcurrency)
	for i, f := range files {
		group.Go(func() (err error) {
			if err := checks.Err(); err != nil {
				return err
			}
			found[i], err = compare(checks, cfg.Storage, f, ignoreUndefinedMD5)
			return err
		})
	}
	err := group.Wait()
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		late := newError(core.CodeUnavailable, idStorage, "the storage did not confirm the files within "+cfg.StorageTimeout.String())
		late.Hint, late.Err = "nothing was published; try again, or raise schemas.storage.timeout", err
		return late
	}
	if err != nil {
		return err
	}
	return mismatchError(c.ID, files, found)
}

// compare compares a file with its object.
func compare(ctx context.Context, storage Storage, f objectFile, ignoreUndefinedMD5 bool) (mismatch, error) {
	o, err := storage.Object(ctx, f.objectID)
	switch {
	case errors.Is(err, core.ErrObjectAbsent):
		return objectMissing, nil
	case err != nil:
		return matches, err
	case o.Size != f.size:
		return sizeDiffers, nil
	case o.MD5 == "" && ignoreUndefinedMD5, strings.EqualFold(o.MD5, f.md5):
		return matches, nil
	default:
		return md5Differs, nil
	}
}

// mismatchError returns the error of the first kind of mismatch with any file, nil when all files match.
func mismatchError(id string, files []objectFile, found []mismatch) error {
	for _, kind := range []struct {
		mismatch                        mismatch
		errorID, member, message, fault string
	}{
		{objectMissing, idMissingObjects, "objectId", "the storage has no objects for files of the analysis ", "is not in the storage"},
		{sizeDiffers, idObjectSizes, "fileSize", "objects in the storage differ in size from the files of the analysis ", "differs from the object's size"},
		{md5Differs, idObjectMD5s, "fileMd5sum", "objects in the storage differ in MD5 sum from the files of the analysis ", "is not known to be the object's MD5 sum"},
	} {
		var ids []string
		var faults []core.Violation
		for i, m := range found {
			if m == kind.mismatch {
				ids = append(ids, files[i].objectID)
				faults = append(faults, core.Violation{
					Pointer: "/files/" + strconv.Itoa(i) + "/" + kind.member, Message: kind.fault, Keyword: "storage",
				})
			}
		}
		if err := analysis.FilesError(kind.errorID, kind.message+id+", which cannot be published: ", ids, faults); err != nil {
			return err
		}
	}
	return nil
}
