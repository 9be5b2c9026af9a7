// Light or dark: as the system, unless the user chose.

import { Observable } from "./observable";

export type Theme = "system" | "light" | "dark";

const KEY = "carma-theme";

export const theme = new Observable<Theme>("system");

export function setTheme(chosen: Theme): void {
  theme.set(chosen);
  if (chosen === "system") {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, chosen);
    document.documentElement.dataset.theme = chosen;
  }
}

export function restoreTheme(): void {
  const kept = localStorage.getItem(KEY);
  if (kept === "light" || kept === "dark") setTheme(kept);
}
