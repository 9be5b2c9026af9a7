// What can be asked of the manager, and what can be done.

import { act, get, type Query } from "./request";
import type {
  Acted,
  EnergyKind,
  EnergyReport,
  Forecast,
  GpuDetail,
  GpuTimeline,
  JobDetail,
  JobSummary,
  Me,
  Notification,
  Queue,
  RecentLooks,
  Status,
  SubmitBody,
  Submitted,
  Tried,
  WhatIf,
  Why,
} from "./types";

type Signal = AbortSignal | undefined;

const gpuPath = (gpu: string) => `/v1/gpus/${encodeURIComponent(gpu)}`;

export const status = (signal?: Signal) => get<Status>("/v1/status", {}, signal);
export const me = (signal?: Signal) => get<Me>("/v1/me", {}, signal);
export const gpus = (signal?: Signal) => get<GpuDetail[]>("/v1/gpus", {}, signal);
export const recent = (query: Query, signal?: Signal) => get<RecentLooks[]>("/v1/recent", query, signal);
export const timeline = (gpu: string, query: Query, signal?: Signal) => get<GpuTimeline>(`${gpuPath(gpu)}/timeline`, query, signal);
export const queue = (query: Query, signal?: Signal) => get<Queue>("/v1/queue", query, signal);
export const history = (query: Query, signal?: Signal) => get<JobSummary[]>("/v1/history", query, signal);
export const job = (id: number, signal?: Signal) => get<JobDetail>(`/v1/jobs/${id}`, {}, signal);
export const why = (id: number, signal?: Signal) => get<Why>(`/v1/jobs/${id}/why`, {}, signal);
export const energy = (query: Query & { by: EnergyKind }, signal?: Signal) => get<EnergyReport>("/v1/energy", query, signal);
export const whatIf = (query: Query, signal?: Signal) => get<WhatIf>("/v1/what-if", query, signal);
export const notifications = (signal?: Signal) => get<Notification[]>("/v1/notifications", {}, signal);

export const saveNotifications = (wishes: Notification[]) => act<unknown>("PUT", "/v1/notifications", wishes);
export const tryNotifications = () => act<Tried[]>("POST", "/v1/notifications/test");
export const forecast = (body: SubmitBody) => act<Forecast[]>("POST", "/v1/forecast", body);
export const submit = (body: SubmitBody) => act<Submitted>("POST", "/v1/jobs", body);
export const drain = (gpu: string) => act<unknown>("POST", `${gpuPath(gpu)}/drain`);
export const resume = (gpu: string) => act<unknown>("POST", `${gpuPath(gpu)}/resume`);

export type JobAct = "cancel" | "hold" | "release" | "requeue";
/** Jobs are meant as people name them: the bare number of an array's first job is that of all of them. */
export const actOn = (job: string, verb: JobAct) => act<Acted>("POST", `/v1/jobs/${job}/${verb}`);
export const setPriority = (job: string, priority: number) => act<Acted>("PATCH", `/v1/jobs/${job}`, { priority });
