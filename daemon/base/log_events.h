/*
 * The MESSAGE_IDs of what the recorder tells the journal: one a kind of event, made at random once
 * and the same for ever, as scripts and dashboards ask for them (journalctl MESSAGE_ID=...). The
 * texts that "journalctl -x" shows are in systemd/ptsnap.catalog, which has each of them.
 */
#pragma once

/* The recorder is ready. */
#define LOG_EVENT_STARTED "8607353630e94a41b4885beb621d4e79"
/* A trigger was taken: CPUs are about to be stopped. */
#define LOG_EVENT_SNAPSHOT_BEGUN "e64dd45ce67a4a18b0fc73d7befb1b70"
/* Its report is stored. */
#define LOG_EVENT_SNAPSHOT_WRITTEN "59d4eea1815d42fa8ced3e37df686be1"
/* There is a bundle, and no report. */
#define LOG_EVENT_DECODE_FAILED "65846e98afba4ad583396a72372bf201"
/* Trace or sideband records were lost. */
#define LOG_EVENT_TRACE_LOST "941c11d728e04524bae0e0ba37890163"
/* Rings are smaller than asked for, or some CPUs are not traced. */
#define LOG_EVENT_RINGS_DEGRADED "057fee9d8eee4c8b898b952be9a137ac"
/* A trigger was refused: too many of its kind. */
#define LOG_EVENT_RATE_LIMITED "d4a4744b627c4a419638c91503f67124"
/* Intel PT cannot be had: the sideband alone is recorded. */
#define LOG_EVENT_PT_UNAVAILABLE "a3fc414d44fe4eef8a9f85ff781fc5bb"
