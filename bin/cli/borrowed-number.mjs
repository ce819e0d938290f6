/** A number that an application has for a while. `operator(method, path, body)` asks the operator API. */

/**
 * Assigns the number to the application. Resolves with what gives it back: to the application that had it, or to none.
 * A number that was assigned anew meanwhile stays where it is.
 */
export async function borrowNumber(operator, number, appUuid) {
  const path = `/numbers/${encodeURIComponent(number)}`;
  const before = await ownerOf(operator, number);
  await operator('PUT', path, { app_uuid: appUuid });
  return async () => {
    if ((await ownerOf(operator, number)) !== appUuid) return;
    if (before === undefined || before === appUuid) await operator('DELETE', path);
    else await operator('PUT', path, { app_uuid: before });
  };
}

async function ownerOf(operator, number) {
  const { apps } = await operator('GET', '/apps');
  for (const { app_uuid: appUuid } of apps) {
    const app = await operator('GET', `/apps/${appUuid}`);
    if (app.inbound_phone_numbers.includes(number)) return appUuid;
  }
  return undefined;
}
