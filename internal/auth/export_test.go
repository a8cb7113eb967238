package auth

// RejectDowngrade exports rejectDowngrade.
var RejectDowngrade = rejectDowngrade
