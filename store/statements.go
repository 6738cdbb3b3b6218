package store

import "embed"

// statements holds one statement a file; a test prepares each against the schema.
//
//go:embed sql/*.sql
var statements embed.FS

var (
	sqlSettings      = statement("settings")
	sqlCreateAnchors = statement("create_anchors")
	sqlLockAnchors   = statement("lock_anchors")
	sqlDraw          = statement("draw")
	sqlDrawMore      = statement("draw_more")
	sqlEndings       = statement("endings")
	sqlSaveAnchor    = statement("save_anchor")
	sqlSaveAnchors   = statement("save_anchors")
	sqlSaveBare      = statement("save_bare_anchor")
	sqlSaveBares     = statement("save_bare_anchors")
	sqlSaveEvent     = statement("save_event")
	sqlSaveEvents    = statement("save_events")
	sqlSwap          = statement("swap")
	sqlSwapCrowded   = statement("swap_crowded")
	sqlSwapRenewals  = statement("swap_renewals")
	sqlSwapType      = statement("swap_type")
	sqlLockedAnchors = statement("locked_anchors")
	sqlKnownAnchors  = statement("known_anchors")
	sqlLook          = statement("look")

	sqlReadSlots   = statement("read_slots")
	sqlReadQueue   = statement("read_queue")
	sqlSaveSlots   = statement("save_slots")
	sqlDropSlots   = statement("drop_slots")
	sqlSaveWaiter  = statement("save_waiter")
	sqlSaveWaiters = statement("save_waiters")
	sqlDropWaiters = statement("drop_waiters")

	sqlBeat           = statement("beat")
	sqlOthers         = statement("others")
	sqlForgetReplicas = statement("forget_replicas")
	sqlUnseated       = statement("unseated")
	sqlNotify         = statement("notify")
	sqlRelax          = statement("relax")

	sqlReadLock   = statement("read_lock")
	sqlListLocks  = statement("list_locks")
	sqlEventsEnd  = statement("events_end")
	sqlEventsOpen = statement("events_open")
	sqlListEvents = statement("list_events")
	sqlHorizon    = statement("horizon")
	sqlEventsOf   = statement("list_events_of")

	sqlCensus      = statement("census")
	sqlPruneLocks  = statement("prune_locks")
	sqlPruneEvents = statement("prune_events")

	sqlLockFence    = statement("lock_fence")
	sqlCreateFenced = statement("create_fenced")
	sqlLockFenced   = statement("lock_fenced")
	sqlReadSlot     = statement("read_slot")
	sqlClock        = statement("clock")
	sqlSaveFenced   = statement("save_fenced")
	sqlReadFenced   = statement("read_fenced")

	sqlEpoch          = statement("epoch")
	sqlNewest         = statement("newest")
	sqlRaiseLongest   = statement("raise_longest")
	sqlLockEpochs     = statement("lock_epochs")
	sqlBeginEpoch     = statement("begin_epoch")
	sqlExtendEpoch    = statement("extend_epoch")
	sqlJump           = statement("jump")
	sqlRebaseLeases   = statement("rebase_leases")
	sqlRebaseLocks    = statement("rebase_locks")
	sqlRebaseWaiters  = statement("rebase_waiters")
	sqlRebaseReplicas = statement("rebase_replicas")
	sqlListEpochs     = statement("list_epochs")
	sqlOpenEpoch      = statement("open_epoch")
	sqlRequireQuorum  = statement("require_quorum")

	sqlSchemaVersion = statement("schema_version")
)

func statement(name string) string {
	text, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return string(text)
}
