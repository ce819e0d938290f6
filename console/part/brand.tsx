/** The name of the platform, as a link to the console's first page. */
export const Brand = () => (
  <a class="brand" href="/console/calls">
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <title>Sidetone</title>
      <rect width="32" height="32" rx="7" fill="#0b6e6e" />
      <path
        d="M6 16h3l2-6 4 13 4-16 3 9h4"
        fill="none"
        stroke="#fff"
        stroke-width="2.4"
        stroke-linejoin="round"
        stroke-linecap="round"
      />
    </svg>
    Sidetone
  </a>
);
