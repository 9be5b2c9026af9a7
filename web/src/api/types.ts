// The manager's types by short names. Where its document says no more than "an object", what is in it is said here.

import type { components } from "./schema";

type Schemas = components["schemas"];
type With<T, Fields> = Omit<T, keyof Fields> & Fields;

export type Phase = Schemas["Phase"];
export type Status = Schemas["Status"];
export type Me = Schemas["Me"];
export type QueueRow = Schemas["QueueRow"];
export type Queue = Schemas["Queue"];
export type Submitted = Schemas["Submitted"];
export type Acted = Schemas["Acted"];
export type Fate = Schemas["Fate"];
export type WhatIf = Schemas["WhatIf"];
export type LogStream = Schemas["LogStream"];
export type EnergyKind = Schemas["EnergyKind"];
export type Notification = Schemas["Notification"];
export type Tried = Schemas["Tried"];
export type Occasion = Schemas["Occasion"];
export type Told = Schemas["Told"];

export interface Utilisation {
  smact?: number;
  smocc?: number;
  drama?: number;
  gpu?: number;
}

export interface AttemptId {
  job: number;
  number: number;
}

export interface Placement {
  devices: { device: string; promised: number }[];
}

/** A verdict or an outcome: a word, or a word with what only it has. */
export type Ending = string | Record<string, unknown>;

export type GpuTenant = With<Schemas["GpuTenant"], { attempt: AttemptId }>;
export type GpuDetail = With<Schemas["GpuDetail"], { utilisation: Utilisation; tenants: GpuTenant[] }>;
export type RecentTenant = With<Schemas["RecentTenant"], { attempt: AttemptId }>;
export type RecentLooks = With<Schemas["RecentLooks"], { tenants: RecentTenant[] }>;
export type MinuteMean = With<Schemas["MinuteMean"], { utilisation: Utilisation }>;
export type GpuStay = With<Schemas["GpuStay"], { attempt: AttemptId }>;
export type GpuTimeline = With<Schemas["GpuTimeline"], { minutes: MinuteMean[]; stays: GpuStay[] }>;
export type EstimateDetail = With<Schemas["EstimateDetail"], { utilisation: Utilisation }>;
export type AttemptDetail = With<
  Schemas["AttemptDetail"],
  { attempt: AttemptId; placement: Placement; verdict?: Ending | null; utilisation: Utilisation }
>;
export type JobDetail = With<
  Schemas["JobDetail"],
  { state: { state: Phase; stopping?: string }; estimate: EstimateDetail; attempts: AttemptDetail[] }
>;
export type Why = With<Schemas["Why"], { reason: { reason: string }; devices: { device: string; obstacles: unknown[] }[] }>;
export type Forecast = With<Schemas["Forecast"], { estimate: EstimateDetail; placement?: Placement | null; why?: Why | null }>;
export type JobSummary = With<Schemas["JobSummary"], { outcome?: Ending | null }>;
export type EnergyOf = { job: number } | { user: [number, string] } | { day: number };
export type EnergySum = With<Schemas["EnergySum"], { of: EnergyOf }>;
export type EnergyReport = With<Schemas["EnergyReport"], { sums: EnergySum[] }>;

/** What is sent to submit a job: what is left out is as the manager has it. */
export interface SubmitBody {
  job: {
    name?: string;
    command: { program: string[] } | { script: { text: string } };
    directory: string;
    environment?: Record<string, string>;
    resources?: { gpus: number; memory?: number; time_limit?: number; exclusive?: boolean };
    schedule?: { priority?: number; hold?: boolean };
  };
}
