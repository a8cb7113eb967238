// Package backup is the format of tutti's backups: files and a manifest with their sizes and hashes, sent as a tar archive and stored as
// a folder. The manifest is written last, so that a backup without one is not complete. It does not know what the files contain.
//
// It must not import other packages of tutti than core.
package backup
