package backup

import (
	"time"
)

// Format is the version of the format that Writer writes.
const Format = 1

// ManifestName is the name of the manifest, the last file of a backup.
const ManifestName = "manifest.json"

// Names of the parts of a backup, which are also the folders of their files.
const (
	PartStore = "store"
	PartQueue = "queue"
	PartIndex = "index"
)

// Manifest describes a complete backup.
type Manifest struct {
	// Format is the version of the format.
	Format int `json:"format"`
	// Version is the version of the tutti that wrote the backup.
	Version string `json:"version"`
	// StartedAt and EndedAt are the times between which the parts were read.
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	// Parts are the parts that the backup contains, NotIncluded those that another server holds.
	Parts       []string `json:"parts"`
	NotIncluded []string `json:"notIncluded"`
	Files       []File   `json:"files"`
}

// File is a file of a backup.
type File struct {
	// Name is the path in the folder, with slashes.
	Name string `json:"name"`
	Size int64  `json:"size"`
	// SHA256 is the hash of the content, hexadecimal.
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all files, or of those of one part.
func (m Manifest) Bytes(part string) int64 {
	total := int64(0)
	for _, f := range m.Files {
		if part == "" || len(f.Name) > len(part) && f.Name[:len(part)+1] == part+"/" {
			total += f.Size
		}
	}
	return total
}
